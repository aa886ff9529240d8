import { spawn, spawnSync } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { segmentPath, segmentsPath, verifyLedger } from '@plat/ledger'
import { FAULT_CODES } from '@plat/testkit/faults/kernel'
import type { KillCount } from './kill-appender.ts'

/** System calls of a file's life. */
const CALLS = ['openat', 'write', 'pwrite64', 'fdatasync', 'fsync', 'ftruncate', 'rename', 'close'] as const
/** The first of the calls of a thread that fails, and how many do. */
const WHEN = ['1..2', '3..5', '9+7'] as const
/** More than the records of one process, gaps and segments included. */
const MAX_RECORDS = 200
/** A process that is not done by then does not work again. */
const DEADLINE_MS = 60_000

export const INJECTIONS = CALLS.length * FAULT_CODES.length * WHEN.length

/** Runs the appender under strace with errors injected into its files' system calls; every acknowledged record must be there, and it must end by itself. */
export async function injectFaults(dir: string, runs: number, tell: (count: KillCount) => void): Promise<KillCount> {
  let count: KillCount = { kills: 0, acknowledged: 0, lost: 0, torn: 0, faults: [] }
  if (spawnSync('strace', ['-V']).error !== undefined)
    return { ...count, faults: ['strace is missing: apt-get install strace'] }
  let total = 0
  const step = INJECTIONS / Math.min(runs, INJECTIONS)
  for (let run = 0; run < Math.min(runs, INJECTIONS); run++) {
    const index = Math.floor(run * step)
    const call = CALLS[index % CALLS.length] ?? 'write'
    const code = FAULT_CODES[Math.floor(index / CALLS.length) % FAULT_CODES.length] ?? 'EIO'
    const when = WHEN[Math.floor(index / CALLS.length / FAULT_CODES.length) % WHEN.length] ?? '1'
    const folder = path.join(dir, `run-${run}`)
    mkdirSync(folder)
    const { acknowledged, injected, faults } = await runInjected(folder, { call, code, when })
    const named = faults.map((fault) => `${code} at ${call} ${when}: ${fault}`)
    total += injected
    count = {
      ...count,
      kills: run + 1,
      acknowledged: count.acknowledged + acknowledged,
      lost: count.lost + faults.length,
      faults: [...count.faults, ...named],
    }
    tell(count)
  }
  console.log(`faults: ${total} errors injected`)
  return total > 0 ? count : { ...count, faults: [...count.faults, 'strace injected nothing'] }
}

/** Which system calls of a thread fail, and with which error. */
export interface InjectedFault {
  /** One or more names, separated by commas. */
  readonly call: string
  readonly code: string
  readonly when: string
}

/** Runs a program of this folder with errors injected into the system calls on these files. `ended`: its exit code; null: it did not end by itself. */
export async function underStrace({
  folder,
  files,
  script,
  fault: { call, code, when },
}: {
  readonly folder: string
  readonly files: readonly string[]
  readonly script: string
  readonly fault: InjectedFault
}): Promise<{ readonly ended: number | null; readonly text: string; readonly injected: number }> {
  const trace = path.join(folder, 'trace')
  const inject = `inject=${call}:error=${code}:when=${when}`
  const traced = [...[folder, ...files].flatMap((file) => ['-P', file]), '-e', `trace=${call}`, '-e', inject]
  const program = [process.execPath, path.join(import.meta.dirname, script), folder]
  const child = spawn('strace', ['-f', '-qq', '-o', trace, ...traced, ...program], {
    stdio: ['ignore', 'pipe', 'ignore'],
    // strace counts calls of each thread; with one thread in the pool a write is one of few.
    env: { ...process.env, UV_THREADPOOL_SIZE: '1' },
    timeout: DEADLINE_MS,
  })
  let text = ''
  child.stdout.setEncoding('latin1').on('data', (chunk: string) => {
    text += chunk
  })
  const ended = await new Promise<number | null>((resolve) => child.once('close', resolve))
  return { ended, text, injected: readFileSync(trace, 'latin1').split('(INJECTED)').length - 1 }
}

async function runInjected(folder: string, fault: InjectedFault) {
  const ledger = path.join(folder, 'audit.jsonl')
  const segments = Array.from({ length: MAX_RECORDS }, (_, first) => segmentPath(ledger, first))
  const list = segmentsPath(ledger)
  const journal = path.join(folder, 'journal.jsonl')
  const files = [ledger, ...segments, list, `${list}.tmp`, journal, `${journal}.tmp`]
  const { ended, text, injected } = await underStrace({ folder, files, script: 'fault-appender.ts', fault })
  const lines = text.split('\n').slice(0, -1)
  const faults = ended === 0 ? [] : [`the appender did not end by itself (exit code ${ended})`]
  const found = await verifyLedger(path.join(folder, 'audit.jsonl'), { strict: true })
  if (found.verdict !== 'valid') faults.push(found.message)
  faults.push(...missing(folder, lines))
  return { acknowledged: lines.length, injected, faults }
}

function missing(folder: string, lines: readonly string[]): string[] {
  const ledger = readdirSync(folder)
    .filter((name) => name.startsWith('audit.jsonl') && name.endsWith('.jsonl'))
    .map((name) => readFileSync(path.join(folder, name), 'utf8'))
    .join('')
  const journal = readFileSync(path.join(folder, 'journal.jsonl'), 'utf8')
  const events = new Set(
    journal
      .split('\n')
      .slice(0, -1)
      .flatMap((line): number[] => JSON.parse(line).events),
  )
  const compacted = journal.includes('"snapshot":true') ? Math.min(...events) : 0
  return lines.flatMap((line) => {
    const [kind, name = ''] = line.split(' ')
    const isThere = kind === 'record' ? ledger.includes(name) : events.has(Number(name)) || Number(name) < compacted
    return isThere ? [] : [`${line} was acknowledged and is lost`]
  })
}
