import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import path from 'node:path'
import { type FlagTable, parseFlags } from '@plat/config'
import { stampSuite } from '../check/stamp.ts'

const ROOT = path.resolve(import.meta.dirname, '../..')

const FLAGS = {
  only: { type: 'list', help: 'the names of the steps to run' },
  count: { type: 'int', default: 1_000_000, min: 1, help: 'malformed requests to send' },
  seed: { type: 'int', default: -1, help: 'draws the same malformed requests again; others each time when absent' },
} as const satisfies FlagTable

interface Step {
  readonly name: string
  readonly runner: string
  args(flags: { readonly count: number; readonly seed: number }): readonly (string | number)[]
  /** Laid over the environment. */
  readonly env?: Readonly<Record<string, string>>
  /** The suite that it proves, where there is one. */
  readonly suite?: string
}

const THREE_GATEWAYS = 'services/gateway/operate/state-backend/three-gateways.live.test.ts'
const CONTINUITY = 'services/gateway/operate/state-backend/continuity.live.test.ts'

/** A test of `npm test` with more rounds than there. `pattern`: only the tests of the file whose names match it. */
function longer(name: string, file: string, env: Readonly<Record<string, string>>, pattern = ''): Step {
  const args = pattern === '' ? [file] : [file, `--test-name-pattern=${pattern}`]
  return { name, runner: 'tools/test/run.ts', args: () => args, env }
}

/** Suites that take too long for every change, run one after the other. */
const STEPS: readonly Step[] = [
  { name: 'malformed', runner: 'test/long/run.ts', args: ({ count, seed }) => ['-count', count, '-seed', seed] },
  longer('approvals', THREE_GATEWAYS, { PLAT_TEST_APPROVAL_ROUNDS: '50' }, 'identical held calls'),
  longer('counting', THREE_GATEWAYS, { PLAT_TEST_COUNTING_SECONDS: '120' }, 'no cap is passed'),
  longer('restored', CONTINUITY, { PLAT_TEST_RESTORES: '15' }, 'older copy'),
  longer('changed-bytes', 'packages/ledger/verify.test.ts', { PLAT_TEST_CHANGED_EVERY: '1' }, 'every changed byte'),
  longer('scale', 'services/operator/scale.live.test.ts', { PLAT_TEST_SCALE_AGENTS: '32000' }),
  { name: 'cost-measuring', runner: 'test/fuzz/measuring.long.ts', args: () => [] },
  {
    name: 'agents',
    runner: 'tools/test/system.ts',
    args: () => ['examples/features/agents/agents.system.test.ts'],
    env: { PLAT_TEST_ALL_AGENTS: '1', PLAT_TEST_FILE_SECONDS: '2400' },
  },
  {
    name: 'conformance',
    runner: 'tools/test/system.ts',
    args: () => ['test/conformance/mcp-conformance-rust.system.test.ts'],
    env: { PLAT_TEST_RUST_SERVER: '1', PLAT_TEST_FILE_SECONDS: '1800' },
  },
  { name: 'hostile', runner: 'test/hostile/run.ts', args: () => [] },
  { name: 'slow-disk', runner: 'test/slow-disk/run.ts', args: () => [] },
  { name: 'fuzz', runner: 'test/fuzz/run.ts', args: () => ['-seconds', 60], suite: 'fuzz' },
  {
    name: 'crash',
    runner: 'test/crash/run.ts',
    args: () => ['-appender', 1000, '-gateway', 100, '-faults', 1000, '-lengths', 20],
    suite: 'crash',
  },
  { name: 'bench', runner: 'bench/run.ts', args: () => ['-save', `bench/results/${today()}.json`], suite: 'bench' },
  {
    name: 'segments',
    runner: 'bench/run.ts',
    args: () => ['-only', 'segments'],
    env: { PLAT_BENCH_RECORDS: '10000000' },
  },
  { name: 'soak', runner: 'bench/soak.ts', args: () => [] },
]

/** `2026-11-21`, in UTC: the name of the day's figures. */
function today(): string {
  return new Date().toISOString().slice(0, 10)
}

/** Runs one step on this screen and answers whether it passed. */
function passes({ runner, env }: Step, args: readonly (string | number)[]): Promise<boolean> {
  const child = spawn(process.execPath, [path.join(ROOT, runner), ...args.map(String)], {
    cwd: ROOT,
    stdio: 'inherit',
    env: { ...process.env, ...env },
  })
  return new Promise((resolve) => {
    child.once('error', () => resolve(false))
    child.once('close', (code) => resolve(code === 0))
  })
}

/** `npm run long`: one step after the other; a step that fails keeps no other from running. */
async function main(args: readonly string[]): Promise<number> {
  const flags = parseFlags(FLAGS, args, 'npm run long --')
  if (!flags.ok) {
    console.error(`${flags.message}\n${flags.usage}`)
    return flags.help ? 0 : 2
  }
  const { only } = flags.values
  const results: string[] = []
  let failed = 0
  for (const step of STEPS) {
    const { name, runner, args: given, suite } = step
    if (only.length > 0 && !only.includes(name)) continue
    if (!existsSync(path.join(ROOT, runner))) {
      results.push(`${name}: not built yet in this version`)
      continue
    }
    console.log(`\n== ${name}`)
    const passed = await passes(step, given(flags.values))
    if (passed && suite !== undefined) stampSuite(ROOT, suite)
    if (!passed) failed++
    results.push(`${name}: ${passed ? 'passed' : 'FAILED'}`)
  }
  console.log(`\n${results.join('\n')}`)
  return failed === 0 && results.length > 0 ? 0 : 1
}

process.exitCode = await main(process.argv.slice(2))
