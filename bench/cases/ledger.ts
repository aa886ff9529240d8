import { closeSync, fdatasync, openSync, readFileSync, write } from 'node:fs'
import path from 'node:path'
import { systemClock, systemIds } from '@plat/core'
import { openLedger, type Rec } from '@plat/ledger'
import { type BenchCase, row } from '../harness/report.ts'
import { median } from '../harness/stats.ts'

/** Records that both writers cycle through; they are created before the measurement starts. */
const DIFFERENT_RECORDS = 1000

/** Appends and resolves when the record is on disk. */
type Append = (n: number) => Promise<unknown>

/** Durable appends by many callers at once, against a bare writer of the same bytes with the same batching. */
export const ledgerCommit: BenchCase = {
  name: 'ledger',
  async run({ dir, effort }) {
    const rows = []
    // The copy holds each text in one piece, as what comes from a token, a request or a policy does.
    const records = Array.from({ length: DIFFERENT_RECORDS }, (_, n) => structuredClone(sampleRecord(n)))
    for (const callers of [64, 256]) {
      const ledger = await openLedgerIn(dir, `ours-${callers}`)
      try {
        await appendFor(
          (n) => ledger.append(records[n % DIFFERENT_RECORDS] ?? sampleRecord(n)),
          callers,
          effort.warmUpMs / 3,
        )
        const bare = new BareWriter(path.join(dir, `bare-${callers}`), linesOf(path.join(dir, `ours-${callers}`)))
        const ours: number[] = []
        const floor: number[] = []
        for (let round = 0; round < effort.rounds; round++) {
          floor.push(await appendFor((n) => bare.append(n), callers, effort.roundMs))
          ours.push(
            await appendFor(
              (n) => ledger.append(records[n % DIFFERENT_RECORDS] ?? sampleRecord(n)),
              callers,
              effort.roundMs,
            ),
          )
        }
        bare.close()
        const value = median(ours.map((rate, round) => rate / (floor[round] ?? Number.NaN)))
        const detail = `ours ${median(ours).toFixed(1)} k/s, bare ${median(floor).toFixed(1)} k/s`
        rows.push(row({ what: `commits over bare, ${callers} callers`, value, unit: '×', target: ['≥', 0.8], detail }))
      } finally {
        await ledger.close()
      }
    }
    return rows
  },
}

export function openLedgerIn(dir: string, name: string) {
  const ids = systemIds(systemClock)
  return openLedger({ path: path.join(dir, name), tenant: '', replica: 'bench', clock: systemClock, ids })
}

/** An intent as the gateway writes it for a tool call. */
export function sampleRecord(n: number): Rec {
  return {
    kind: 'intent',
    call: `01900000-0000-7000-8000-${n.toString(16).padStart(12, '0')}`,
    session: 'bench',
    namespace: 'default',
    agent: 'assistant',
    user: 'alice',
    jti: '01900000-0000-7000-8000-00000000beef',
    op: 'mcp.call',
    server: 'notes',
    tool: 'add_note',
    method: 'tools/call',
    argsSha256: 'a'.repeat(64),
    argsBytes: 674,
    action: 'allow',
    policy: 'default/assistant',
    rule: 'adding',
    policyRevision: `sha256:${'0'.repeat(64)}`,
    // In the order in which the gateway makes them, absent ones included.
    facts: {
      chain: [],
      dataClass: 'internal',
      groups: [],
      jurisdiction: undefined,
      scopes: ['tools:notes'],
      taints: [],
      tier: 'tier-0',
      trust: 'trusted',
      verified: undefined,
    },
  }
}

/** Each caller appends, waits until it is durable, and appends again. Thousands of records a second. */
async function appendFor(append: Append, callers: number, ms: number): Promise<number> {
  const began = performance.now()
  let n = 0
  const caller = async () => {
    while (performance.now() - began < ms) await append(n++)
  }
  await Promise.all(Array.from({ length: callers }, caller))
  return n / (performance.now() - began)
}

/** Lines as long as those of our writer, which the bare writer cycles through. */
function linesOf(file: string): string[] {
  return readFileSync(file, 'utf8')
    .split('\n', DIFFERENT_RECORDS)
    .slice(1, -1)
    .map((line) => `${line}\n`)
}

/** The floor: whatever came while the last write and fdatasync ran goes out in the next one. Nothing is hashed or encoded. */
class BareWriter {
  readonly #fd: number
  readonly #lines: readonly string[]
  #waiting: { line: string; resolve: () => void }[] = []
  #busy = false

  constructor(file: string, lines: readonly string[]) {
    this.#fd = openSync(file, 'a')
    this.#lines = lines
  }

  append(n: number): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.push({ line: this.#lines[n % this.#lines.length] ?? '', resolve })
      if (this.#busy) return
      this.#busy = true
      setImmediate(() => this.#commit())
    })
  }

  close(): void {
    closeSync(this.#fd)
  }

  #commit(): void {
    const batch = this.#waiting
    this.#waiting = []
    if (batch.length === 0) {
      this.#busy = false
      return
    }
    write(this.#fd, Buffer.from(batch.map(({ line }) => line).join('')), (failed) => {
      if (failed !== null) throw failed
      fdatasync(this.#fd, (lost) => {
        if (lost !== null) throw lost
        for (const { resolve } of batch) resolve()
        setImmediate(() => this.#commit())
      })
    })
  }
}
