import { createHash } from 'node:crypto'
import { existsSync, globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'

/** A suite that `npm test` leaves out. */
export interface Suite {
  readonly name: string
  /** Its runner; a suite without a runner is not built. */
  readonly runner: string
  readonly script: string
  /** The code that it proves. */
  readonly code: readonly string[]
}

export const SUITES: readonly Suite[] = [
  {
    name: 'crash',
    runner: 'test/crash/run.ts',
    script: 'npm run test:crash',
    code: ['packages/ledger', 'packages/process', 'services/gateway', 'test/crash'],
  },
  {
    name: 'cluster',
    runner: 'test/cluster/run.ts',
    script: 'npm run test:cluster',
    code: ['packages/resources', 'services/identity', 'services/operator', 'test/cluster'],
  },
  {
    name: 'browser',
    runner: 'test/browser/run.ts',
    script: 'npm run test:browser',
    code: ['apps/console', 'test/browser'],
  },
  {
    name: 'system',
    runner: 'test/system/run.ts',
    script: 'npm run test:system',
    code: ['packages/keys', 'test/system'],
  },
  { name: 'fuzz', runner: 'test/fuzz/run.ts', script: 'npm run fuzz', code: ['packages', 'services', 'test/fuzz'] },
  { name: 'bench', runner: 'bench/run.ts', script: 'npm run bench', code: ['packages', 'services', 'bench'] },
]

const CODE = /\.(?:ts|mjs|tsx|yaml)$/

/** Notes that a suite has passed on the code as it is now. */
export function stampSuite(root: string, name: string): void {
  const suite = SUITES.find((it) => it.name === name)
  if (suite === undefined) throw new Error(`${name}: no such suite`)
  mkdirSync(path.dirname(stampOf(root, suite)), { recursive: true })
  writeFileSync(stampOf(root, suite), hashOf(root, suite))
}

/** Suites that are built and have not passed on the code as it is now. Empty where none was ever stamped, as in a fresh clone. */
export function staleSuites(root: string, suites: readonly Suite[] = SUITES): readonly Suite[] {
  if (!suites.some((suite) => existsSync(stampOf(root, suite)))) return []
  return suites.filter((suite) => {
    if (!existsSync(path.join(root, suite.runner))) return false
    const stamp = stampOf(root, suite)
    return !existsSync(stamp) || readFileSync(stamp, 'utf8') !== hashOf(root, suite)
  })
}

function stampOf(root: string, suite: Suite): string {
  return path.join(root, '.cache/suites', suite.name)
}

function hashOf(root: string, suite: Suite): string {
  const hash = createHash('sha256')
  for (const folder of suite.code) {
    const files = globSync('**/*', {
      cwd: path.join(root, folder),
      exclude: (name) => name === 'node_modules' || name === '.plat',
    })
    for (const file of files.filter((name) => CODE.test(name)).sort()) {
      hash.update(`${folder}/${file}\n`).update(readFileSync(path.join(root, folder, file)))
    }
  }
  return hash.digest('hex')
}
