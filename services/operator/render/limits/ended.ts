import { rfc3339 } from '@plat/core'
import { isTerminal, type Resource } from '@plat/resources'
import { keyOf } from '../declared.ts'
import type { RevocationEntry } from './revocations.ts'

/** How long a token of a session that has ended may still be valid, in milliseconds: the broker's default `-max-ttl`. */
const TOKEN_LIFE_MS = 60 * 60 * 1000
/** Sessions of one namespace that have ended and are refused by name; while there are as many, none of it begins. */
export const MAX_ENDED_PER_NAMESPACE = 10_000

type Session = Resource<'AgentSession'>

interface Ended {
  readonly session: Session
  /** Milliseconds since the epoch. */
  readonly at: number
}

/** How sessions are looked up: by `<namespace>/<name>`. */
export interface SessionLookup {
  /** Returns the session as it is now; undefined: it is gone. */
  find(key: string): Session | undefined
  /** Whether a session that is gone had begun, although it was last seen without that. */
  hadBegun(key: string): boolean
}

/**
 * Sessions that have ended, or were deleted, while a token of theirs may still be valid: the gateway and the broker refuse such tokens through
 * the rendered revocations. Deleted ones are known as long as this process lives. What has changed costs the same however many there are.
 */
export class EndedSessions {
  /** By `<namespace>/<name>`: sessions as they were last. */
  readonly #last = new Map<string, Session>()
  /** By `<namespace>/<name>`, then by UID: several sessions may have had one name. */
  readonly #ended = new Map<string, Map<string, Ended>>()
  /** By namespace. */
  readonly #counts = new Map<string, number>()

  /** Updates the entries from changed sessions. Returns whether an entry changed. */
  see(keys: readonly string[], { find, hadBegun }: SessionLookup, now: number): boolean {
    let isNews = false
    for (const key of keys) {
      const session = find(key)
      const before = this.#last.get(key)
      const isAnother = session?.metadata.uid !== before?.metadata.uid
      if (session === undefined) this.#last.delete(key)
      else this.#last.set(key, session)
      const began = before?.status?.startedAt !== undefined || hadBegun(key)
      const ended: Ended[] = []
      if (before !== undefined && isAnother && began) ended.push({ session: before, at: endOf(before) ?? now })
      const at = endOf(session)
      if (session !== undefined && at !== null) ended.push({ session, at })
      for (const one of ended) if (one.at + TOKEN_LIFE_MS > now && this.#add(key, one)) isNews = true
      // Those that had the name before are refused by their tokens from now on.
      if (isAnother && this.#ended.has(key)) isNews = true
    }
    return isNews
  }

  /** How many sessions of a namespace have ended while a token of theirs may be valid. */
  countOf(namespace: string): number {
    return this.#counts.get(namespace) ?? 0
  }

  /** The revocations in force now, ordered by id. */
  entries(now: number): readonly RevocationEntry[] {
    const entries: RevocationEntry[] = []
    for (const [key, sessions] of this.#ended) {
      const named = this.#last.get(key)?.metadata.uid
      for (const [uid, ended] of sessions) {
        const isNamedAgain = named !== undefined && named !== uid
        if (ended.at + TOKEN_LIFE_MS <= now) this.#drop(key, uid)
        // Another session has the name by now: only the token that is known of the previous one can be refused.
        else if (!isNamedAgain || ended.session.status?.jti !== undefined) entries.push(entryOf(ended, isNamedAgain))
      }
    }
    return entries.toSorted((a, b) => (a.id < b.id ? -1 : 1))
  }

  #add(key: string, { session, at }: Ended): boolean {
    const { namespace, uid } = session.metadata
    const sessions = this.#ended.get(key) ?? new Map<string, Ended>()
    const known = sessions.get(uid)
    if (known?.at === at) return false
    this.#ended.set(key, sessions)
    sessions.set(uid, { session, at })
    if (known === undefined) this.#counts.set(namespace, this.countOf(namespace) + 1)
    return true
  }

  #drop(key: string, uid: string): void {
    const sessions = this.#ended.get(key)
    const ended = sessions?.get(uid)
    if (sessions === undefined || ended === undefined) return
    sessions.delete(uid)
    if (sessions.size === 0) this.#ended.delete(key)
    const { namespace } = ended.session.metadata
    const left = this.countOf(namespace) - 1
    if (left > 0) this.#counts.set(namespace, left)
    else this.#counts.delete(namespace)
  }
}

function entryOf({ session, at }: Ended, isNamedAgain: boolean): RevocationEntry {
  const { metadata, spec, status } = session
  const { namespace, name, uid } = metadata
  return {
    id: `AgentSession/${keyOf(session)}/${uid}`,
    target: isNamedAgain ? { jti: status?.jti ?? '' } : { session: `${namespace}/${spec.agentRef}/${name}` },
    mode: 'revoke',
    reason: 'the session has ended',
    createdAt: rfc3339(at),
    expiresAt: rfc3339(at + TOKEN_LIFE_MS),
  }
}

/** When a session ended, in milliseconds since the epoch; null: it has not, or never began. */
function endOf(session: Session | undefined): number | null {
  const { phase, startedAt, conditions = [] } = session?.status ?? {}
  if (!isTerminal(phase) || startedAt === undefined) return null
  const at = Date.parse(conditions.find(({ type }) => type === 'Ready')?.lastTransitionTime ?? '')
  return Number.isNaN(at) ? Date.parse(startedAt) : at
}
