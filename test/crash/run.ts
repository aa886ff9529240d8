import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { type FlagTable, parseFlags } from '@plat/config'
import { journalFaults, ledgerFaults } from '@plat/testkit/faults/matrix'
import { everyPrefix } from '@plat/testkit/faults/prefixes'
import { stampSuite } from '../../tools/check/stamp.ts'
import { INJECTIONS, injectFaults } from './inject.ts'
import { ARCHIVE_INJECTIONS, injectArchiveFaults } from './inject-archive.ts'
import { injectRepairFaults } from './inject-repair.ts'
import { type KillCount, killAppender } from './kill-appender.ts'
import { killGateway } from './kill-gateway.ts'

const ROOT = path.resolve(import.meta.dirname, '../..')
/** Fewer kills than these prove little; only a run of at least as many counts as a pass of the suite. */
const ENOUGH = { appender: 100, gateway: 10, faults: 24 } as const

/** System calls of the trace after whose prefixes a ledger is opened. */
const TRACE_CALLS = 2000

const FLAGS = {
  appender: { type: 'int', default: ENOUGH.appender, min: 0, help: 'kills of a process that only appends' },
  gateway: { type: 'int', default: ENOUGH.gateway, min: 0, help: 'kills of the whole gateway under MCP load' },
  faults: {
    type: 'int',
    default: ENOUGH.faults,
    min: 0,
    help: `runs with I/O errors injected by strace, up to ${INJECTIONS} of writing, ${ARCHIVE_INJECTIONS} of retention, and as many of repairs`,
  },
  lengths: { type: 'int', default: 6, min: 0, help: 'longest row of failing system calls on a simulated disk' },
} as const satisfies FlagTable

/** `npm run test:crash`: kill -9, and nothing acknowledged is lost. */
async function main(args: readonly string[]): Promise<number> {
  const flags = parseFlags(FLAGS, args, 'npm run test:crash --')
  if (!flags.ok) {
    console.error(`${flags.message}\n${flags.usage}`)
    return flags.help ? 0 : 2
  }
  const { appender, gateway, faults, lengths } = flags.values
  await simulate(lengths)
  const passed =
    (await run('faults', faults, injectFaults)) &&
    (await run('archive', faults, injectArchiveFaults)) &&
    (await run('repair', faults, injectRepairFaults)) &&
    (await run('appender', appender, killAppender)) &&
    (await run('gateway', gateway, killGateway))
  const isEnough = appender >= ENOUGH.appender && gateway >= ENOUGH.gateway && faults >= ENOUGH.faults
  if (passed && isEnough) stampSuite(ROOT, 'crash')
  return passed ? 0 : 1
}

/** Every error at every system call of a journal's and a ledger's life; throws when a promise is broken. */
async function simulate(longest: number): Promise<void> {
  if (longest === 0) return
  const dir = mkdtempSync(path.join(tmpdir(), 'plat-crash-'))
  const lengths = Array.from({ length: longest }, (_, index) => index + 1)
  const sealedFaults: typeof ledgerFaults = (matrix) => ledgerFaults({ ...matrix, segmentBytes: 600 })
  for (const [name, matrix] of Object.entries({
    journal: journalFaults,
    ledger: ledgerFaults,
    segments: sealedFaults,
  })) {
    const { runs, acknowledged } = await matrix({ path: path.join(dir, `${name}.jsonl`), lengths, rounds: 4 })
    console.log(`${name}: ${acknowledged} acknowledged, 0 lost, 0 foreign descriptors, ${runs} runs with faults`)
  }
  const { states, sealed } = await everyPrefix({
    ...{ path: path.join(dir, 'prefixes.jsonl'), calls: TRACE_CALLS, segmentBytes: 1200 },
  })
  console.log(`prefixes: 0 lost after crashes in ${states} states of ${TRACE_CALLS} system calls, ${sealed} segments`)
  rmSync(dir, { recursive: true })
}

type Killing = (dir: string, kills: number, tell: (count: KillCount) => void) => Promise<KillCount>

/** Runs one kind of kills in a separate folder, which is kept if an invariant was violated. */
async function run(name: string, kills: number, killing: Killing): Promise<boolean> {
  if (kills === 0) return true
  const dir = mkdtempSync(path.join(tmpdir(), 'plat-crash-'))
  const count = await killing(dir, kills, (so) => {
    if (process.stderr.isTTY) process.stderr.write(`\r${sentence(name, so)} of ${kills}`)
  })
  if (process.stderr.isTTY) process.stderr.write('\r\u001b[K')
  console.log(sentence(name, count))
  for (const fault of count.faults.slice(0, 10)) console.log(`  ${fault}`)
  if (count.faults.length === 0) rmSync(dir, { recursive: true })
  else console.log(`  the ledger is kept in ${dir}`)
  return count.faults.length === 0
}

function sentence(name: string, { acknowledged, lost, torn, sealed = 0, interrupted = 0, kills }: KillCount): string {
  const segments = `${sealed} sealed segments, ${interrupted} interrupted`
  return `${name}: ${acknowledged} acknowledged, ${lost} lost, ${torn} torn tails, ${segments}, kills ${kills}`
}

process.exitCode = await main(process.argv.slice(2))
