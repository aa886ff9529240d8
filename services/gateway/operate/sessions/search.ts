import { AdminError, flagIn, queried } from '../../admin/index.ts'
import type { Session, SessionName } from './book.ts'

/** Longest text that is searched for, in characters, and its words. */
const TEXT_MAX_CHARS = 256
const WORDS_MAX = 16

/** Labels and pending approvals, which other features have. */
export interface SessionState {
  readonly taints: (name: SessionName) => readonly string[]
  readonly pendingApprovals: (session: Readonly<Session>) => number
}

/** Conditions of a search, all of which must hold. */
export interface SessionSearch {
  matches(session: Readonly<Session>, state: SessionState): boolean
}

/**
 * Reads the conditions of `GET /v1/sessions`: exact names, a label, when the session was active, whether it was denied something, spent money or
 * waits for an approval, and words. Throws `invalid_request`. Returns null if there is none.
 */
export function searchIn(query: unknown): SessionSearch | null {
  const conditions = [
    ...(['namespace', 'agent', 'session', 'user'] as const).map((name) => nameCondition(query, name)),
    labelCondition(query),
    ...timeConditions(query),
    flagIn(query, 'denied') ? ({ denied }: Readonly<Session>) => denied > 0 : null,
    flagIn(query, 'spent') ? ({ spentMicros }: Readonly<Session>) => spentMicros > 0 : null,
    flagIn(query, 'pending') ? pendingCondition : null,
    flagIn(query, 'labelled') ? labelledCondition : null,
    // Last, since it costs most.
    wordsCondition(query),
  ].filter((condition) => condition !== null)
  if (conditions.length === 0) return null
  return { matches: (session, state) => conditions.every((condition) => condition(session, state)) }
}

type Condition = SessionSearch['matches']

const pendingCondition: Condition = (session, { pendingApprovals }) => pendingApprovals(session) > 0

const labelledCondition: Condition = (session, { taints }) => taints(session).length > 0

function nameCondition(query: unknown, name: 'namespace' | 'agent' | 'session' | 'user'): Condition | null {
  const wanted = queried(query, name)
  return wanted === null || wanted === '' ? null : (session) => session[name] === wanted
}

function labelCondition(query: unknown): Condition | null {
  const label = queried(query, 'label')
  return label === null || label === '' ? null : (session, { taints }) => taints(session).includes(label)
}

/** A session is active from its first to its last record. */
function timeConditions(query: unknown): readonly (Condition | null)[] {
  const [from, to] = [timeIn(query, 'from'), timeIn(query, 'to')]
  return [
    from === null ? null : ({ lastActivity }) => lastActivity >= from,
    to === null ? null : ({ startedAt }) => startedAt < to,
  ]
}

function timeIn(query: unknown, name: string): number | null {
  const text = queried(query, name)
  if (text === null || text === '') return null
  const time = /^\d{4}-\d\d-\d\dT/.test(text) ? Date.parse(text) : Number.NaN
  if (Number.isNaN(time)) throw new AdminError('invalid_request', `${name}: must be an RFC 3339 time`)
  return time
}

/** Each word must occur in the names, the user, the tier or a label, in any case of letters. */
function wordsCondition(query: unknown): Condition | null {
  const text = queried(query, 'q') ?? ''
  if (text.length > TEXT_MAX_CHARS)
    throw new AdminError('invalid_request', `q: must have at most ${TEXT_MAX_CHARS} characters`)
  const words = text.toLowerCase().split(/\s+/).filter(Boolean)
  if (words.length > WORDS_MAX) throw new AdminError('invalid_request', `q: must have at most ${WORDS_MAX} words`)
  if (words.length === 0) return null
  return (session, { taints }) => {
    const { namespace, agent, session: name, user, tier } = session
    const names = `${namespace}/${agent}/${name} ${user ?? ''} ${tier}`.toLowerCase()
    const others = words.filter((word) => !names.includes(word))
    if (others.length === 0) return true
    const labels = taints(session).join(' ').toLowerCase()
    return others.every((word) => labels.includes(word))
  }
}
