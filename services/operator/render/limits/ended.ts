import { rfc3339 } from '@plat/core'
import { isTerminal, type Resource } from '@plat/resources'
import type { RevocationEntry } from './revocations.ts'

/** How long a token of a session that has ended may still be valid, in milliseconds: the broker's default `-max-ttl`. */
const TOKEN_LIFE_MS = 60 * 60 * 1000

type Session = Resource<'AgentSession'>

interface Ended {
  readonly session: Session
  /** Milliseconds since the epoch. */
  readonly at: number
}

/**
 * Sessions that have ended, or were deleted, while a token of theirs may still be valid: the gateway and the broker refuse such tokens through
 * the rendered revocations. Deleted ones are known as long as this process lives.
 */
export class EndedSessions {
  /** By `<namespace>/<name>`: sessions as they were last. */
  readonly #last = new Map<string, Session>()
  readonly #deleted = new Map<string, Ended>()

  /** Takes note of sessions that have changed; `find` returns undefined for one that is gone. Returns whether the entries have changed. */
  see(keys: readonly string[], find: (key: string) => Session | undefined, now: number): boolean {
    let isNews = false
    for (const key of keys) {
      const session = find(key)
      const before = this.#last.get(key)
      const isSame = session?.metadata.uid === before?.metadata.uid
      if (before !== undefined && !isSame) this.#deleted.set(key, { session: before, at: endOf(before) ?? now })
      if (session === undefined) this.#last.delete(key)
      else this.#last.set(key, session)
      isNews ||= !isSame || endOf(session) !== endOf(before)
    }
    return isNews
  }

  /** The revocations in force now, ordered by id. */
  entries(now: number): readonly RevocationEntry[] {
    for (const [key, { at }] of this.#deleted) if (at + TOKEN_LIFE_MS <= now) this.#deleted.delete(key)
    const ended = [...this.#last.values()].flatMap((session) => {
      const at = endOf(session)
      return at === null || at + TOKEN_LIFE_MS <= now ? [] : [entryOf({ session, at }, false)]
    })
    const deleted = [...this.#deleted].flatMap(([key, one]) => {
      const isNamedAgain = this.#last.has(key)
      // Another session has the name by now: only the token that is known of the previous one can be refused.
      return isNamedAgain && one.session.status?.jti === undefined ? [] : [entryOf(one, isNamedAgain)]
    })
    return [...ended, ...deleted].toSorted((a, b) => (a.id < b.id ? -1 : 1))
  }
}

function entryOf({ session: { metadata, spec, status }, at }: Ended, isNamedAgain: boolean): RevocationEntry {
  const { namespace, name, uid } = metadata
  return {
    id: `AgentSession/${namespace}/${name}/${uid}`,
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
