import path from 'node:path'
import { run } from 'node:test'
import { spec } from 'node:test/reporters'
import { type Plan, planTests } from './plan.ts'

const ROOT = path.resolve(import.meta.dirname, '../..')

/** Two cores are what a small machine has. */
const CONCURRENCY = 2

/** A file that is not done by then hangs, in milliseconds. */
const FILE_TIMEOUT_MS = 300_000

/** The runner's own closing lines, which stand once, at the very end. */
const COUNT_LINE = /^(?:tests|suites|pass|fail|cancelled|skipped|todo|duration_ms) /

const COUNTS = ['tests', 'suites', 'pass', 'fail', 'cancelled', 'skipped', 'todo', 'duration_ms'] as const

/** `npm test`: every test that needs no more than `npm ci`, in one run with one count. */
async function main(args: readonly string[]): Promise<number> {
  let plan: Plan
  try {
    plan = planTests(ROOT, args)
  } catch (error) {
    console.error(error instanceof Error ? error.message : String(error))
    return 2
  }
  process.env.NODE_COMPILE_CACHE ??= path.join(ROOT, '.cache/compile')
  process.env.PLAT_TEST_FILES = plan.shared.join('\n')
  const counts = await report(plan)
  for (const name of COUNTS) console.log(`# ${name} ${counts.get(name) ?? 0}`)
  const count = (name: string) => Number(counts.get(name) ?? 0)
  const failed = count('fail') + count('cancelled')
  console.log(`${count('pass')} passed, ${failed} failed, ${count('skipped') + count('todo')} skipped`)
  return failed > 0 || count('tests') === 0 ? 1 : 0
}

/** Runs the plan, prints each test as it ends, and answers the runner's counts. */
async function report(plan: Plan): Promise<ReadonlyMap<string, string>> {
  const stop = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => stop.abort())
  const together = path.join(import.meta.dirname, 'together.ts')
  const events = run({
    files: [...(plan.shared.length > 0 ? [together] : []), ...plan.isolated],
    concurrency: CONCURRENCY,
    timeout: FILE_TIMEOUT_MS,
    signal: stop.signal,
    testNamePatterns: plan.names.map((name) => new RegExp(name)),
  })
  const counts = new Map<string, string>()
  const screen = new spec()
  screen.pipe(process.stdout, { end: false })
  for await (const event of events) {
    if (event.type === 'test:diagnostic' && event.data.nesting === 0 && COUNT_LINE.test(event.data.message)) {
      const [name = '', value = ''] = event.data.message.split(' ')
      counts.set(name, value)
    } else screen.write(event)
  }
  await new Promise<void>((resolve) => screen.once('end', resolve).end())
  return counts
}

process.exitCode = await main(process.argv.slice(2))
