import { ledgerPage, leftRecords } from '@plat/ledger'
import type { CandidatePolicies } from './candidate.ts'
import { type CurrentToolOf, endsCall, type Recorded, recorded } from './recorded.ts'
import type { Comparison, SimulatedCall, Simulation } from './view.ts'

/** Records per turn of the event loop. */
const SLICE_RECORDS = 250

export interface SimulateParts {
  /** Returns the file of a tenant's ledger, or null; empty: the fleet's. */
  readonly ledgerOf: (tenant: string) => string | null
  readonly currentToolOf: CurrentToolOf
  /** Returns captured arguments; null: none, or not readable for this caller. */
  readonly captured: (namespace: string, argsSha256: string) => Promise<Uint8Array | null>
}

/** The calls to evaluate again. */
export interface Replay {
  /** A record's number, or a time in the format of records. */
  readonly from: number | { readonly at: string }
  readonly to: { readonly at: string } | null
  /** The first page of its range. */
  readonly isFirst: boolean
  /** Number of records to read. */
  readonly limit: number
  /** Null: all agents. */
  readonly agent: string | null
  readonly show: ReadonlySet<Comparison>
  /** The file of the ledger. */
  readonly auditPath: string
  /** Whether the requester may see this namespace. */
  readonly sees: (namespace: string) => boolean
}

/** Evaluates recorded calls by a candidate, page by page. Does not affect the policies in force. */
export async function simulate(
  candidate: CandidatePolicies,
  replay: Replay,
  parts: SimulateParts,
): Promise<Simulation> {
  const counts = { same: 0, changed: 0, needs_arguments: 0, skipped: 0 }
  const items: SimulatedCall[] = []
  let { from } = replay
  const gone = replay.isFirst ? await leftRecords(replay.auditPath, replay) : []
  const left = gone.map(({ first, last }) => ({ first, last }))
  let through: Simulation['through'] = null
  for (let unread = replay.limit; unread > 0; ) {
    const limit = Math.min(unread, SLICE_RECORDS)
    const page = await ledgerPage(replay.auditPath, { from, to: replay.to, limit, wants: () => true })
    for (const { seq, rec } of page.items) {
      through = { seq, at: String(rec.at) }
      if (!isAskedFor(rec, replay)) continue
      const known = recorded(rec, parts.currentToolOf)
      if (known === null) {
        counts.skipped++
        continue
      }
      const item = await judged(candidate, known, { seq, rec }, parts)
      counts[item.verdict]++
      if (replay.show.has(item.verdict)) items.push(item)
    }
    unread -= limit
    if (page.next === null) return { counts, items, through, left, nextCursor: null }
    from = page.next
  }
  return { counts, items, through, left, nextCursor: String(from) }
}

function isAskedFor(rec: Readonly<Record<string, unknown>>, { agent, sees }: Replay): boolean {
  const { namespace } = rec
  if (!endsCall(rec) || typeof namespace !== 'string' || !sees(namespace)) return false
  return agent === null || agent === `${namespace}/${rec.agent}`
}

async function judged(
  candidate: CandidatePolicies,
  { input, was, argsSha256 }: Recorded,
  { seq, rec }: { readonly seq: number; readonly rec: Readonly<Record<string, unknown>> },
  { captured }: SimulateParts,
): Promise<SimulatedCall> {
  const { namespace, agent, session } = input.identity
  let judgement = candidate.judge(input)
  let isCaptured = false
  if (judgement.decision === null && argsSha256 !== null) {
    const args = await captured(namespace, argsSha256)
    isCaptured = args !== null
    if (args !== null) judgement = candidate.judge({ ...input, args })
  }
  const { decision, possible } = judgement
  return {
    seq,
    at: String(rec.at),
    call: String(rec.call),
    namespace,
    agent,
    session,
    op: input.operation,
    server: input.target.server,
    tool: typeof rec.tool === 'string' ? rec.tool : null,
    verdict: decision === null ? 'needs_arguments' : decision.action === was.action ? 'same' : 'changed',
    was,
    would:
      decision === null
        ? null
        : { action: decision.action, policy: decision.policy, rule: decision.rule, reason: decision.reason },
    possible,
    captured: isCaptured,
  }
}
