import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import type { TestEvent } from 'node:test/reporters'
import { isObject } from '@plat/core'

/** The suites whose tests may show a requirement, each with the script that runs all of it. */
export const SUITE_SCRIPTS = {
  test: 'npm test',
  system: 'npm run test:system',
  cluster: 'npm run test:cluster',
} as const
export type SuiteName = keyof typeof SUITE_SCRIPTS

export const SUITE_NAMES: readonly SuiteName[] = ['test', 'system', 'cluster']

/** The suite that runs a test file. */
export function suiteOf(file: string): SuiteName {
  if (file.endsWith('.system.test.ts')) return 'system'
  return file.endsWith('.cluster.test.ts') ? 'cluster' : 'test'
}

/** The lines at which tests of one file begin, by how the tests ended. */
interface FileResult {
  /** SHA-256 of the file when it ran, in hex: a file that has changed since shows nothing. */
  readonly sha256: string
  readonly passed: readonly number[]
  /** Failed, cancelled, skipped, or marked as to do. */
  readonly notPassed: readonly number[]
}

/** Collects how the tests of one run ended. */
export class Results {
  readonly #lines = new Map<string, { readonly passed: Set<number>; readonly notPassed: Set<number> }>()

  add(event: TestEvent): void {
    if (event.type !== 'test:pass' && event.type !== 'test:fail') return
    const { file, line, skip, todo } = event.data
    if (file === undefined || line === undefined) return
    const lines = this.#lines.get(file) ?? { passed: new Set(), notPassed: new Set() }
    this.#lines.set(file, lines)
    const passed = event.type === 'test:pass' && skip === undefined && todo === undefined
    ;(passed ? lines.passed : lines.notPassed).add(line)
  }

  /** Writes what one whole run of a suite gave, in place of what the run before it gave. */
  write(root: string, suite: SuiteName): void {
    const files = [...this.#lines].map(([file, { passed, notPassed }]): [string, FileResult] => [
      path.relative(root, file),
      { sha256: hashOf(file), passed: [...passed], notPassed: [...notPassed] },
    ])
    mkdirSync(path.dirname(resultsFile(root, suite)), { recursive: true })
    writeFileSync(resultsFile(root, suite), JSON.stringify(Object.fromEntries(files)))
  }
}

/** The results of the last whole run of each suite on this machine. */
export class LastRuns {
  readonly #root: string
  readonly #files = new Map<string, FileResult>()
  readonly missing: readonly SuiteName[]

  constructor(root: string) {
    this.#root = root
    this.missing = SUITE_NAMES.filter((suite) => !this.#read(suite))
  }

  #read(suite: SuiteName): boolean {
    const file = resultsFile(this.#root, suite)
    if (!existsSync(file)) return false
    const read: unknown = JSON.parse(readFileSync(file, 'utf8'))
    for (const [name, result] of Object.entries(isObject(read) ? read : {})) {
      if (isFileResult(result)) this.#files.set(name, result)
    }
    return true
  }

  /** Whether the test that begins at this line ran and passed, every time it ran. */
  hasPassed(file: string, line: number): boolean {
    const result = this.#files.get(file)
    if (result === undefined || result.sha256 !== hashOf(path.join(this.#root, file))) return false
    return result.passed.includes(line) && !result.notPassed.includes(line)
  }
}

function isFileResult(value: unknown): value is FileResult {
  return (
    isObject(value) && typeof value.sha256 === 'string' && Array.isArray(value.passed) && Array.isArray(value.notPassed)
  )
}

function resultsFile(root: string, suite: SuiteName): string {
  return path.join(root, '.cache/tests', `${suite}.json`)
}

function hashOf(file: string): string {
  return createHash('sha256').update(readFileSync(file)).digest('hex')
}
