import { numberIn, textIn } from '../../api/client.ts'
import { hitsOf } from '../../ui/hits.ts'
import type { Tone } from '../../ui/parts.tsx'

/** A record as the admin API returns it. */
export interface Line {
  readonly seq: number
  readonly rec: { readonly kind: string; readonly at: string; readonly [member: string]: unknown }
  readonly traceUrl?: unknown
}

/** One event of a session: a call with its outcome, what was redacted in it, a refusal, or another record. */
export interface Entry {
  readonly key: string
  /** Record with the end of it. */
  readonly seq: number
  readonly startMs: number
  /** Null for what has no duration, and for calls that have not ended. */
  readonly ms: number | null
  readonly tone: Tone
  /** `completed`, `denied`, `running`, `redacted`, `approval granted`, … */
  readonly state: string
  readonly target: string
  /** Code, policy and rule, labels: what else is known. */
  readonly detail: string
  readonly costMicros: number | null
  readonly currency: string
  readonly approval: string | null
  readonly traceUrl: string | null
}

/**
 * Calls have an intent and an outcome, which become one entry; the order is that of the beginnings. Hits of data-loss prevention are entries after that of their
 * call: those in the arguments at its beginning, those in the response at its end.
 */
export function entriesOf(lines: readonly Line[]): readonly Entry[] {
  const entries = new Map<string, Entry>()
  const hits = new Map<string, readonly Entry[]>()
  for (const line of lines) {
    const call = textIn(line.rec, 'call')
    const isOutcome = line.rec.kind === 'outcome'
    const key = call !== null && (isOutcome || line.rec.kind === 'intent') ? `call ${call}` : `record ${line.seq}`
    const begun = entries.get(key)
    const entry = isOutcome ? endedCall(line, key, begun) : entryOf(line, key)
    entries.set(key, entry)
    hits.set(key, hitEntries(line, entry))
  }
  return [...entries.values(), ...[...hits.values()].flat()].toSorted((one, other) => one.startMs - other.startMs)
}

function entryOf(line: Line, key: string): Entry {
  const { seq, rec } = line
  const base = {
    ...{ key, seq, startMs: Date.parse(rec.at), ms: null, target: targetOf(rec), detail: detailOf(rec) },
    ...{ costMicros: null, currency: '', approval: textIn(rec, 'approval'), traceUrl: textIn(line, 'traceUrl') },
  }
  if (rec.kind === 'intent') return { ...base, tone: 'info', state: 'running' }
  if (rec.kind === 'decision') return { ...base, tone: 'bad', state: 'denied' }
  if (rec.kind === 'approval') return { ...base, ...approvalState(textIn(rec, 'event') ?? '') }
  if (rec.kind === 'alert') return { ...base, tone: 'warn', state: textIn(rec, 'alert') ?? 'alert' }
  return { ...base, tone: rec.kind === 'revocation' ? 'bad' : 'neutral', state: textIn(rec, 'action') ?? rec.kind }
}

function hitEntries({ rec }: Line, call: Entry): readonly Entry[] {
  return hitsOf(rec).map(({ direction, state, tone, detectors }) => ({
    ...call,
    ...{ key: `${call.key} ${direction} ${state}`, state, tone, detail: `${direction}: ${detectors}` },
    ...{ startMs: call.startMs + (direction === 'response' ? (call.ms ?? 0) : 0), ms: null },
    ...{ costMicros: null, currency: '', approval: null, traceUrl: null },
  }))
}

/** States whose event is not a word for people. */
const STATE_NAMES: Readonly<Record<string, string>> = {
  repeated: 'approved for the session',
  session_granted: 'approval for the session begins',
  session_lifted: 'approval for the session lifted',
  session_ended: 'approval for the session ended',
}

function approvalState(event: string): { readonly tone: Tone; readonly state: string } {
  const isGood = event === 'granted' || event === 'used' || event === 'repeated' || event === 'session_granted'
  return {
    tone: isGood ? 'good' : event === 'denied' ? 'bad' : 'warn',
    state: STATE_NAMES[event] ?? `approval ${event}`,
  }
}

function endedCall(line: Line, key: string, begun: Entry | undefined): Entry {
  const { rec } = line
  const ms = numberIn(rec, 'ms') ?? 0
  const result = textIn(rec, 'result') ?? 'ended'
  return {
    ...entryOf(line, key),
    // A call begins before its intent, which it may have waited for: for an approval, for a rate.
    startMs: Math.min(begun?.startMs ?? Number.POSITIVE_INFINITY, Date.parse(rec.at) - ms),
    ms,
    tone: result === 'completed' ? 'good' : result === 'denied' ? 'bad' : 'warn',
    state: result,
    costMicros: numberIn(rec, 'costMicros'),
    currency: textIn(rec, 'currency') ?? '',
  }
}

function targetOf(rec: Line['rec']): string {
  const model = textIn(rec, 'model')
  if (model !== null) return `${textIn(rec, 'route') ?? 'model'} · ${model}`
  const parts = [textIn(rec, 'server'), textIn(rec, 'tool') ?? textIn(rec, 'method')].filter((part) => part !== null)
  return parts.length === 0 ? (textIn(rec, 'op') ?? rec.kind) : parts.join('/')
}

/** The reason of a decision, unless it repeats policy and rule. */
function reasonIn(rec: Line['rec']): string | null {
  const reason = textIn(rec, 'reason')
  if (reason === 'scope') return 'allowed by the scopes of the token'
  return reason?.startsWith('rule ') && textIn(rec, 'rule') !== null ? null : reason
}

function detailOf(rec: Line['rec']): string {
  const policy = textIn(rec, 'policy')
  const rule = textIn(rec, 'rule')
  const labels = rec.taintsAdded
  return [
    textIn(rec, 'code'),
    policy === null ? null : rule === null ? policy : `${policy}#${rule}`,
    reasonIn(rec),
    textIn(rec, 'by'),
    Array.isArray(labels) ? `labels: ${labels.join(', ')}` : null,
  ]
    .filter((part) => part !== null && part !== '')
    .join(' · ')
}
