/** A suite of `npm run long`. */
export interface Step {
  readonly name: string
  /** Below the root of the repository. */
  readonly runner: string
  /** The test file that runs, and a part of the names of its tests; only where one file runs. */
  readonly file?: string
  readonly pattern?: string
  args(flags: { readonly count: number; readonly seed: number }): readonly (string | number)[]
  /** Laid over the environment. */
  readonly env?: Readonly<Record<string, string>>
  /** The suite that it proves, where there is one. */
  readonly suite?: string
}

const THREE_GATEWAYS = 'services/gateway/operate/state-backend/three-gateways.live.test.ts'
const CONTINUITY = 'services/gateway/operate/state-backend/continuity.live.test.ts'

/** A test file may take half an hour. */
const PATIENCE = { PLAT_TEST_FILE_SECONDS: '1800' }

/** A test of `npm test` with more rounds than there. `pattern`: only the tests of the file whose names match it. */
function longer(name: string, file: string, env: Readonly<Record<string, string>>, pattern = ''): Step {
  const args = pattern === '' ? [file] : [file, `--test-name-pattern=${pattern}`]
  return { name, runner: 'tools/test/run.ts', args: () => args, env: { ...env, ...PATIENCE }, file, pattern }
}

/** Suites that take too long for every change, run one after the other. */
export const STEPS: readonly Step[] = [
  { name: 'malformed', runner: 'test/long/run.ts', args: ({ count, seed }) => ['-count', count, '-seed', seed] },
  longer('tenants', 'services/gateway/operate/tenants/hostile.live.test.ts', { PLAT_TEST_TENANT_REQUESTS: '100000' }),
  longer('approvals', THREE_GATEWAYS, { PLAT_TEST_APPROVAL_ROUNDS: '50' }, 'identical held calls'),
  longer('held-calls', 'test/e2e/approvals-restart.live.test.ts', { PLAT_TEST_HELD_CALLS: '1000' }),
  longer('counting', THREE_GATEWAYS, { PLAT_TEST_COUNTING_SECONDS: '120' }, 'no cap is exceeded'),
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
