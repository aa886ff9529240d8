import { useState } from 'preact/hooks'
import type { Client } from '../../api/client.ts'
import { useLoaded, usePages } from '../../app/query.ts'
import { linkTo } from '../../app/route.ts'
import { hasRole, useShared } from '../../app/session.ts'
import { count } from '../../ui/format.ts'
import { Badge, Fact, Facts, Money, PageHead, Problem, Section, Time } from '../../ui/parts.tsx'
import { Name } from '../../ui/text.tsx'
import { ForSessions } from '../approvals/for-sessions.tsx'
import { entriesOf } from './entries.ts'
import { SessionMoney } from './money.tsx'
import { Lift, Revoke } from './revoke.tsx'
import type { Session } from './sessions.tsx'
import { Timeline } from './timeline.tsx'
import { View, type ViewMode } from './view.tsx'

const TOPICS = ['session', 'approval', 'revocation', 'denial', 'calls'] as const
const PAGE_SIZE = 500

/** One session: its numbers, its timeline, and its revocation. */
export function SessionPage({ id }: { readonly id: string }) {
  const { client, session } = useShared()
  const [revoking, setRevoking] = useState(false)
  const [viewing, setViewing] = useState<ViewMode | null>(null)
  const found = useLoaded(id, (signal) => findSession(client, id, signal), { topics: TOPICS })
  const revoked = useLoaded(`revoked ${id}`, (signal) => revocationsOf(client, id, signal), { topics: ['revocation'] })
  const name = id.split('/').at(-1) ?? id
  return (
    <>
      <PageHead title={<Name of={name} />}>
        {(revoked.data ?? []).length > 0 && <Badge tone="bad">revoked</Badge>}
        {(found.data?.views ?? []).map((mode) => (
          <button key={mode} type="button" disabled={viewing === mode} onClick={() => setViewing(mode)}>
            {mode === 'watch' ? 'Watch' : 'Control …'}
          </button>
        ))}
        {hasRole(session, 'killswitch') && (
          <button type="button" class="danger" onClick={() => setRevoking(true)}>
            Revoke …
          </button>
        )}
      </PageHead>
      {found.error !== null && <Problem error={found.error} retry={found.reload} />}
      {found.data !== null && <Numbers session={found.data} />}
      {found.data === null && !found.loading && found.error === null && (
        <p class="note">This gateway no longer lists the session; its records are below.</p>
      )}
      {(revoked.data ?? []).map((one) => (
        <Lift key={one.id} revocation={one} done={revoked.reload} />
      ))}
      {viewing !== null && <View id={id} mode={viewing} close={() => setViewing(null)} />}
      <ForSessions only={namesOf(id)} />
      <Records id={id} />
      {revoking && <Revoke id={id} session={found.data} done={revoked.reload} close={() => setRevoking(false)} />}
    </>
  )
}

function Numbers({ session }: { readonly session: Session }) {
  const { id, user, tier, startedAt, lastActivity, calls, denied, pendingApprovals, taints, spent } = session
  return (
    <Section title="Summary">
      <Facts>
        <Fact name="Session">
          <Name of={id} />
        </Fact>
        <Fact name="User">{user === null ? 'no user' : <Name of={user} />}</Fact>
        <Fact name="Tier">
          <Name of={tier} />
        </Fact>
        <Fact name="Started">
          <Time at={startedAt} full />
        </Fact>
        <Fact name="Last activity">
          <Time at={lastActivity} full />
        </Fact>
        <Fact name="Calls">
          {count(calls)}, {count(denied)} denied
        </Fact>
        <Fact name="Pending approvals">
          {pendingApprovals === 0 ? (
            'none'
          ) : (
            <a href={linkTo('approvals', undefined, { session: session.session })}>{count(pendingApprovals)}</a>
          )}
        </Fact>
        <Fact name="Labels">
          <Name of={taints.join(', ') || 'none'} />
        </Fact>
        <Fact name="Spent">
          <Money micros={spent.micros} currency={spent.currency} />
        </Fact>
      </Facts>
    </Section>
  )
}

function Records({ id }: { readonly id: string }) {
  const { client, session } = useShared()
  if (hasRole(session, 'auditor')) return <ReadableRecords id={id} client={client} />
  return (
    <Section title="Timeline">
      <p class="note">Reading the records of a session needs the role auditor.</p>
    </Section>
  )
}

function ReadableRecords({ id, client }: { readonly id: string; readonly client: Client }) {
  const pages = usePages(
    id,
    (cursor, signal) =>
      client.call('GET /v1/sessions/{id}/timeline', {
        params: { id },
        query: { limit: PAGE_SIZE, ...(cursor && { cursor }) },
        signal,
      }),
    TOPICS,
  )
  const { data, error, more, reload } = pages
  return (
    <>
      <Section title="Timeline">
        {data === null && error === null && <p class="faint">Loading …</p>}
        {data === null && error !== null && <Problem error={error} retry={reload} />}
        {data !== null && <Timeline entries={entriesOf(data)} more={more} />}
      </Section>
      {data !== null && <SessionMoney lines={data} isWhole={more === null} />}
    </>
  )
}

/** The members of a session's ID. */
function namesOf(id: string) {
  const [namespace = '', agent = '', ...rest] = id.split('/')
  return { namespace, agent, session: rest.join('/') }
}

/** The session in the list, or null if the gateway does not list it. */
export async function findSession(client: Client, id: string, signal: AbortSignal): Promise<Session | null> {
  const { items } = await client.call('GET /v1/sessions', { query: { ...namesOf(id), limit: 1 }, signal })
  return items[0] ?? null
}

async function revocationsOf(client: Client, id: string, signal: AbortSignal) {
  const { items } = await client.call('GET /v1/revocations', { query: { limit: 500 }, signal })
  return items.filter(({ target }) => target.session === id)
}
