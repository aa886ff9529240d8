import { spawn, spawnSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import path from 'node:path'
import { systemClock, systemIds } from '@plat/core'
import { openLedger, tailLedger, verifyLedger } from '@plat/ledger'

/** Result of a run of kills. */
export interface KillCount {
  readonly kills: number
  readonly acknowledged: number
  readonly lost: number
  readonly torn: number
  /** Segments that were sealed. */
  readonly sealed?: number
  /** Kills between the `segment` record of a file and the first record of the next one. */
  readonly interrupted?: number
  /** Broken promises, in words. */
  readonly faults: readonly string[]
}

/** A ledger serves for so many kills; a new one keeps start-up from reading ever more. */
const KILLS_PER_LEDGER = 25
/** Longest time between the first acknowledged record and the kill, in milliseconds. */
const LONGEST_LIFE_MS = 40
/** Of this number of lives one is longer, so that segments are sealed in it. */
const LONG_LIFE_EVERY = 5
const SEALING_LIFE_MS = 800

/** Kills a process that only appends, again and again, and looks for every record that it had acknowledged. */
export async function killAppender(dir: string, kills: number, tell: (count: KillCount) => void): Promise<KillCount> {
  let count: KillCount = { kills: 0, acknowledged: 0, lost: 0, torn: 0, faults: [] }
  while (count.kills < kills) {
    const file = path.join(dir, `append-${count.kills}.jsonl`)
    const acknowledged = new Map<number, string>()
    for (let kill = 0; kill < KILLS_PER_LEDGER && count.kills < kills; kill++) {
      const before = acknowledged.size
      const longest = kill % LONG_LIFE_EVERY === LONG_LIFE_EVERY - 1 ? SEALING_LIFE_MS : LONGEST_LIFE_MS
      await runAndKill(file, longest, acknowledged)
      const fault = await verified(file)
      count = {
        ...count,
        kills: count.kills + 1,
        acknowledged: count.acknowledged + acknowledged.size - before,
        interrupted: (count.interrupted ?? 0) + (isInterrupted(file) ? 1 : 0),
        faults: fault === null ? count.faults : [...count.faults, `after kill ${count.kills}: ${fault}`],
      }
      tell(count)
    }
    const { lost, fault } = await check(file, acknowledged)
    const torn = readdirSync(dir).filter((name) => name.startsWith(`${path.basename(file)}.torn-`)).length
    const sealed = (count.sealed ?? 0) + readdirSync(dir).filter((name) => /\.\d{20}\.jsonl$/.test(name)).length
    const faults = fault === null ? count.faults : [...count.faults, fault]
    count = { ...count, lost: count.lost + lost, torn: count.torn + torn, sealed, faults }
    for (const name of readdirSync(dir))
      if (name.startsWith(path.basename(file)) && fault === null) rmSync(path.join(dir, name))
    tell(count)
  }
  return count
}

/** One life: from the start to SIGKILL at a random moment after the first acknowledgement. */
function runAndKill(file: string, longestMs: number, acknowledged: Map<number, string>): Promise<void> {
  const script = path.join(import.meta.dirname, 'appender.ts')
  const child = spawn(process.execPath, [script, file], { stdio: ['ignore', 'pipe', 'inherit'] })
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  let text = ''
  child.stdout.setEncoding('latin1')
  child.stdout.once('data', () => setTimeout(() => child.kill('SIGKILL'), Math.random() * longestMs))
  child.stdout.on('data', (chunk: string) => {
    text += chunk
  })
  child.once('close', (code, signal) => {
    // The process was killed while it wrote the part after the last line end.
    for (const line of text.split('\n').slice(0, -1)) {
      const [seq = '', hash = ''] = line.split(' ')
      acknowledged.set(Number(seq), hash)
    }
    if (signal === 'SIGKILL') resolve()
    else reject(new Error(`the appender ended by itself with exit code ${code}`))
  })
  return promise
}

/** Returns what is wrong with a ledger as a kill left it, or null. */
export async function verified(file: string): Promise<string | null> {
  const found = await verifyLedger(file, { strict: true, beside: true })
  return found.verdict === 'valid' || found.verdict === 'torn' ? null : `${file}: ${found.message}`
}

/** Returns whether the ledger has no active file, or one that is empty or ends with its `segment` record. */
export function isInterrupted(file: string): boolean {
  if (!existsSync(file)) return true
  const last = readFileSync(file, 'utf8').split('\n').at(-2) ?? ''
  return last === '' || last.includes('"kind":"segment"')
}

/** Returns the output of `plat audit verify` if the ledger is not valid, else null. */
export function refusedByCommand(file: string): string | null {
  const bin = path.resolve(import.meta.dirname, '../../apps/cli/bin/plat.mjs')
  const { status, stdout, stderr } = spawnSync(process.execPath, [bin, 'audit', 'verify', file], { encoding: 'utf8' })
  return status === 0 ? null : `plat audit verify ${file} exits with ${status}: ${stdout}${stderr}`
}

/** The last start works without help, and the ledger then holds all that was acknowledged. */
async function check(
  file: string,
  acknowledged: ReadonlyMap<number, string>,
): Promise<{ lost: number; fault: string | null }> {
  const ids = systemIds(systemClock)
  await (await openLedger({ path: file, tenant: '', replica: 'check', clock: systemClock, ids })).close()
  const refused = refusedByCommand(file)
  if (refused !== null) return { lost: 0, fault: refused }
  const hashes = new Map<number, string>()
  for await (const { seq, hash } of tailLedger(file)) hashes.set(seq, hash)
  const missing = [...acknowledged].filter(([seq, hash]) => hashes.get(seq) !== hash)
  const fault = missing.length === 0 ? null : `${file}: record ${missing[0]?.[0]} was acknowledged and is lost`
  return { lost: missing.length, fault }
}
