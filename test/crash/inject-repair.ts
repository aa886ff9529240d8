import { spawnSync } from 'node:child_process'
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { systemClock, systemIds } from '@plat/core'
import { checkpointsPath, repairLedger, restoreSegment, segmentsPath, verifyLedger } from '@plat/ledger'
import { writeSegments } from '@plat/testkit/segments'
import type { KillCount } from './kill-appender.ts'

/** Faults of one system call of a repair, as strace names them. */
const FAULTS = ['signal=SIGKILL', 'error=EIO', 'error=ENOSPC'] as const
const CALLS = [
  ...['openat', 'read', 'pread64', 'write', 'pwrite64', 'copy_file_range', 'sendfile', 'ftruncate', 'fchmod'],
  ...['fsync', 'fdatasync', 'rename', 'unlink', 'unlinkat', 'close'],
]
const REPAIRS = ['sealed', 'active'] as const
const DEADLINE_MS = 120_000

interface Damaged {
  readonly kind: (typeof REPAIRS)[number]
  readonly folder: string
  readonly path: string
  /** File in which the damaged bytes are kept, and those. */
  readonly aside: { readonly file: string; readonly bytes: Buffer }
  /** Every file whose system calls fail. */
  readonly files: readonly string[]
}

/** A process that repairs a damaged ledger ends, or has an error, at each of its system calls in turn. Another repair must complete it. */
export async function injectRepairFaults(
  dir: string,
  runs: number,
  tell: (count: KillCount) => void,
): Promise<KillCount> {
  let count: KillCount = { kills: 0, acknowledged: 0, lost: 0, torn: 0, faults: [] }
  if (spawnSync('strace', ['-V']).error !== undefined)
    return { ...count, faults: ['strace is missing: apt-get install strace'] }
  const points = await faultPoints(dir)
  const step = Math.max(1, points.length / Math.max(1, runs))
  let interrupted = 0
  for (let at = 0; at < points.length; at += step) {
    const point = points[Math.floor(at)]
    if (point === undefined) break
    const { kind, call, nth, fault } = point
    const damaged = await damagedLedger(path.join(dir, `repair-${Math.floor(at)}`), kind)
    const ended = trace(damaged, [`inject=${call}:${fault}:when=${nth}`])
    if (ended !== 0) interrupted++
    const wrong = await wrongAfterRepeat(damaged)
    if (wrong.length === 0) rmSync(damaged.folder, { recursive: true })
    count = {
      ...count,
      kills: count.kills + 1,
      acknowledged: count.acknowledged + 1,
      lost: count.lost + wrong.length,
      faults: [...count.faults, ...wrong.map((what) => `${kind}, ${fault} at ${call} ${nth}: ${what}`)],
    }
    tell(count)
  }
  console.log(`repair: ${interrupted} repairs interrupted at ${points.length} system calls and faults`)
  return interrupted > 0 ? count : { ...count, faults: [...count.faults, 'strace injected nothing'] }
}

/** Returns each fault at each system call of both repairs. */
async function faultPoints(dir: string) {
  const points: { kind: Damaged['kind']; call: string; nth: number; fault: string }[] = []
  for (const kind of REPAIRS) {
    const damaged = await damagedLedger(path.join(dir, `whole-${kind}`), kind)
    if (trace(damaged, []) !== 0) throw new Error(`the repair of a ${kind} file fails without a fault`)
    // strace counts the calls of each thread.
    const counts = new Map<string, number>()
    for (const [, thread, call] of readFileSync(traceFile(damaged), 'latin1').matchAll(/^(\d+)\s+(\w+)\(/gm)) {
      counts.set(`${thread} ${call}`, (counts.get(`${thread} ${call}`) ?? 0) + 1)
    }
    for (const call of CALLS) {
      const most = Math.max(0, ...[...counts].filter(([key]) => key.endsWith(` ${call}`)).map(([, number]) => number))
      for (let nth = 1; nth <= most; nth++) for (const fault of FAULTS) points.push({ kind, call, nth, fault })
    }
  }
  return points
}

async function damagedLedger(folder: string, kind: Damaged['kind']): Promise<Damaged> {
  const ledger = path.join(folder, 'ledger', 'audit.jsonl')
  mkdirSync(path.dirname(ledger), { recursive: true })
  const { files } = await writeSegments(ledger, { segments: 2, records: 20 })
  const [, sealed, active] = files
  if (sealed === undefined || active === undefined) throw new Error('the ledger lacks files')
  const damaged = kind === 'sealed' ? sealed : active
  if (kind === 'sealed') copyFileSync(sealed.path, path.join(folder, 'copy.jsonl'))
  const text = damaged.lines.map((line, at) => (at === 3 ? line.replace('alice', 'mallo') : line)).join('\n')
  writeFileSync(damaged.path, `${text}\n`)
  const from = kind === 'sealed' ? 0 : Buffer.byteLength(damaged.lines.slice(0, 3).join('\n')) + 1
  const file = kind === 'sealed' ? `${damaged.path}.damaged` : `${ledger}.damaged-${damaged.first + 3}`
  const names = [ledger, ...files.map((one) => one.path), segmentsPath(ledger), file, checkpointsPath(ledger)]
  const more = [`${ledger}.tree`, `${sealed.path}.restoring`, `${ledger}.head`, path.join(folder, 'copy.jsonl')]
  return {
    ...{ kind, folder, path: ledger, aside: { file, bytes: Buffer.from(`${text}\n`).subarray(from) } },
    files: [...names, ...more, path.dirname(ledger)],
  }
}

function traceFile({ folder }: Damaged): string {
  return path.join(folder, 'trace')
}

/** Runs the repair under strace; returns its exit code, null when a signal ended it. */
function trace(damaged: Damaged, inject: readonly string[]): number | null {
  const paths = damaged.files.flatMap((file) => ['-P', file])
  const options = ['-f', '-qq', '-o', traceFile(damaged), ...paths, '-e', `trace=${CALLS.join()}`]
  const program = [process.execPath, path.join(import.meta.dirname, 'fault-repairer.ts'), damaged.folder]
  const { status } = spawnSync('strace', [...options, ...inject.flatMap((one) => ['-e', one]), ...program], {
    stdio: 'ignore',
    env: { ...process.env, UV_THREADPOOL_SIZE: '1' },
    timeout: DEADLINE_MS,
  })
  return status
}

/** Repairs once more, without faults, and returns what is wrong then. */
async function wrongAfterRepeat({ kind, folder, path: ledger, aside }: Damaged): Promise<readonly string[]> {
  const copy = path.join(folder, 'copy.jsonl')
  try {
    if (kind === 'sealed') await restoreSegment(ledger, copy)
    else await repairLedger({ path: ledger, clock: systemClock, ids: systemIds(systemClock) })
  } catch (error) {
    return [`another repair fails: ${error instanceof Error ? error.message : String(error)}`]
  }
  const { verdict, message } = await verifyLedger(ledger, { strict: true, beside: true })
  const rest = readdirSync(path.dirname(ledger)).filter((name) => name.includes('.restoring'))
  const isKept = existsSync(aside.file) && readFileSync(aside.file).equals(aside.bytes)
  return [
    ...(verdict === 'valid' ? [] : [message]),
    ...(isKept ? [] : [`${aside.file} does not keep the damaged bytes`]),
    ...rest.map((name) => `${name} is left over`),
  ]
}
