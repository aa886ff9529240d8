import { type Clock, mapInSlices, rfc3339 } from '@plat/core'
import { type AdminRoutes, bodyAs } from '../../admin/index.ts'
import type { Identity } from '../../call/index.ts'
import { previewSchema, type RevocationTarget } from './format.ts'
import { type AbsentSession, RevocationList } from './list.ts'
import { demandTarget } from './routes.ts'
import type { PreviewView } from './view.ts'

/** Sessions in a response. */
const ITEMS_MAX = 100

/** Where the calls and sessions are known that a revocation would end. */
export interface PreviewParts {
  readonly live: { each(visit: (call: { readonly identity: Identity; readonly long: boolean }) => void): void }
  /** Sessions that have called. */
  readonly sessions: () => Iterable<Readonly<AbsentSession>>
  readonly pendingOf: (session: AbsentSession) => number
  readonly clock: Pick<Clock, 'now'>
}

type Item = PreviewView['sessions']['items'][number]
type Relation = Item['relation']

interface Found {
  readonly session: AbsentSession
  readonly relation: Relation
  calls: number
}

/** `POST /v1/revocations/preview`: what a revocation would end, before it is made. */
export function createPreviewRoutes(parts: PreviewParts): { readonly routes: AdminRoutes } {
  return {
    routes: {
      mount(context) {
        context.on('POST /v1/revocations/preview', async ({ body }, _reply, caller) => {
          const { target } = bodyAs(previewSchema, body)
          demandTarget(caller, target)
          return await previewOf(target, parts, ({ namespace, tenant }) => caller.sees(namespace, tenant))
        })
      },
    },
  }
}

/**
 * Evaluates every call in progress and every listed session as if the target were revoked. Delegated and forked sessions can be of other namespaces: all
 * are counted, and those in namespaces that `sees` accepts are named.
 */
export async function previewOf(
  target: RevocationTarget,
  { live, sessions, pendingOf, clock }: PreviewParts,
  sees: (session: AbsentSession) => boolean,
): Promise<PreviewView> {
  const list = new RevocationList()
  const createdAt = rfc3339(clock.now())
  list.add({ id: 'preview', target, mode: 'revoke', reason: '', createdAt, expiresAt: null })
  const found = new Map<string, Found>()
  const tokens = new Set<string>()
  let [calls, long] = [0, 0]
  live.each(({ identity, long: isLong }) => {
    const relation = relationOf(list, identity, clock)
    if (relation === null) return
    calls++
    if (isLong) long++
    tokens.add(identity.jti)
    found.getOrInsertComputed(idOf(identity), () => ({ session: identity, relation, calls: 0 })).calls++
  })
  await mapInSlices([...sessions()], (session) => {
    if (list.hasEnded(session, clock))
      found.getOrInsertComputed(idOf(session), () => ({ session, relation: 'own', calls: 0 }))
  })
  const isSeen = new Set([...found].flatMap(([id, { session }]) => (sees(session) ? [id] : [])))
  const items = await mapInSlices(found, ([id, one]) => itemOf(id, one, pendingOf))
  const named = items.filter(({ id }) => isSeen.has(id))
  return {
    calls: { total: calls, long },
    tokens: tokens.size,
    sessions: {
      total: items.length,
      delegated: items.filter(({ relation }) => relation === 'delegated').length,
      forked: items.filter(({ relation }) => relation === 'forked').length,
      items: named
        .toSorted((one, other) => other.calls - one.calls || (one.id < other.id ? -1 : 1))
        .slice(0, ITEMS_MAX),
    },
    pendingApprovals: items.reduce((sum, { pendingApprovals }) => sum + pendingApprovals, 0),
  }
}

/** Why the revocation would end a call: its own session, one that delegated to it, or one that it was forked from. Null: it would not. */
function relationOf(list: RevocationList, who: Identity, clock: Pick<Clock, 'now'>): Relation | null {
  if (list.judge(who, clock) === null) return null
  const alone = { ...who, forkedFrom: [], delegators: [], ancestors: [] }
  if (list.judge(alone, clock) !== null) return 'own'
  return list.judge({ ...who, forkedFrom: [] }, clock) === null ? 'forked' : 'delegated'
}

function itemOf(id: string, { session, relation, calls }: Found, pendingOf: PreviewParts['pendingOf']): Item {
  return { id, user: session.user, relation, calls, pendingApprovals: pendingOf(session) }
}

function idOf({ namespace, agent, session }: AbsentSession): string {
  return `${namespace}/${agent}/${session}`
}
