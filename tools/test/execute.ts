import { run } from 'node:test'
import { spec } from 'node:test/reporters'
import { Results } from './results.ts'

/** The runner's own closing lines, printed once, at the very end. */
const COUNT_LINE = /^(?:tests|suites|pass|fail|cancelled|skipped|todo|duration_ms) /

const COUNTS = ['tests', 'suites', 'pass', 'fail', 'cancelled', 'skipped', 'todo', 'duration_ms'] as const

/** Result of one run of test files. */
export interface Executed {
  readonly passed: number
  readonly failed: number
  readonly skipped: number
  readonly results: Results
  /** Prints the runner's counts and, as the last line, `N passed, N failed, N skipped`. */
  printCounts(): void
}

/** Runs each test file in a separate process, and prints each test as it ends. A file that takes longer than `timeoutMs` fails. */
export async function executeTests(options: {
  readonly files: readonly string[]
  readonly concurrency: number
  readonly timeoutMs: number
  readonly names?: readonly string[]
}): Promise<Executed> {
  const stop = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => stop.abort())
  const events = run({
    files: [...options.files],
    concurrency: options.concurrency,
    timeout: options.timeoutMs,
    signal: stop.signal,
    execArgv: ['--import', new URL('./preload.ts', import.meta.url).href],
    testNamePatterns: (options.names ?? []).map((name) => new RegExp(name)),
  })
  const counts = new Map<string, number>()
  const results = new Results()
  const screen = new spec()
  screen.pipe(process.stdout, { end: false })
  for await (const event of events) {
    results.add(event)
    if (event.type === 'test:diagnostic' && event.data.nesting === 0 && COUNT_LINE.test(event.data.message)) {
      const [name = '', value = ''] = event.data.message.split(' ')
      counts.set(name, Number(value))
    } else screen.write(event)
  }
  await new Promise<void>((resolve) => screen.once('end', resolve).end())
  const count = (name: (typeof COUNTS)[number]) => counts.get(name) ?? 0
  const passed = count('pass')
  const failed = count('fail') + count('cancelled') + (count('tests') === 0 ? 1 : 0)
  const skipped = count('skipped') + count('todo')
  return {
    passed,
    failed,
    skipped,
    results,
    printCounts() {
      for (const name of COUNTS) console.log(`# ${name} ${count(name)}`)
      console.log(`${passed} passed, ${count('fail') + count('cancelled')} failed, ${skipped} skipped`)
    },
  }
}
