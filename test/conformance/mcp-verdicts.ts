import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** The longest a whole suite may take on the slowest machine, in milliseconds. */
const SUITE_MS = 280_000

/** A suite with its options and the least number of scenarios that it must have run: a suite that stops early must not look equal. */
export interface Suite {
  readonly name: string
  /** Package of the runner. */
  readonly runner: string
  readonly options: readonly string[]
  readonly atLeast: number
}

export const suites: readonly Suite[] = [
  {
    name: '0.2.0-alpha.12, revision 2025-11-25',
    runner: '@modelcontextprotocol/conformance',
    options: ['--requirements', '2025-11-25'],
    atLeast: 33,
  },
  {
    name: '0.2.0-alpha.12, revision 2026-07-28',
    runner: '@modelcontextprotocol/conformance',
    options: ['--requirements', '2026-07-28'],
    atLeast: 50,
  },
  { name: '0.1.16', runner: 'conformance-legacy', options: ['--suite', 'all'], atLeast: 32 },
]

/**
 * Runs a suite against a server: scenario to `✓ 2 passed, 0 failed`. The suite's exit code says nothing more. Details are written into a
 * folder in `dir`.
 */
export function verdicts({ runner, options }: Suite, url: string, dir: string): Promise<Map<string, string>> {
  const output = join(dir, `${runner}-${new URL(url).port}`.replaceAll('/', '-'))
  const entry = fileURLToPath(import.meta.resolve(`${runner}/dist/index.js`))
  const argv = [entry, 'server', '--url', url, ...options, '-o', output]
  return new Promise((resolve, reject) => {
    execFile(process.execPath, argv, { timeout: SUITE_MS, maxBuffer: 2 ** 26 }, (error, stdout, stderr) => {
      const found = [...stdout.matchAll(/^([✓✗]) ([\w-]+): (\d+ passed, \d+ failed)/gm)]
      if (found.length === 0) reject(new Error(`the suite did not run: ${error?.message ?? ''}\n${stderr}`))
      resolve(new Map(found.map(([, mark, scenario = '', counts]) => [scenario, `${mark} ${counts}`])))
    })
  })
}
