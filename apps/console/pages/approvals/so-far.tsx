import { useLoaded } from '../../app/query.ts'
import { linkTo } from '../../app/route.ts'
import { hasRole, useShared } from '../../app/session.ts'
import { count } from '../../ui/format.ts'
import { Badge, Fact, Facts, Money, Problem, Section } from '../../ui/parts.tsx'
import { Name } from '../../ui/text.tsx'
import { entriesOf } from '../sessions/entries.ts'
import { findSession } from '../sessions/session.tsx'
import { Timeline } from '../sessions/timeline.tsx'
import { type Approval, sessionOf } from './model.ts'

/** Records of the session that are displayed beside an approval. */
const RECORDS = 100

/** The last calls of the session before this one. */
export function SoFar({ approval }: { readonly approval: Approval }) {
  const { client, session } = useShared()
  const mayRead = hasRole(session, 'auditor')
  const { namespace, agent, session: name } = approval
  const { data, error, reload } = useLoaded(
    `${approval.id} ${mayRead}`,
    async (signal) => {
      if (!mayRead) return null
      return client.call('GET /v1/audit/records', {
        query: { namespace, agent, session: name, order: 'newest', limit: RECORDS },
        signal,
      })
    },
    { topics: ['approval'] },
  )
  return (
    <Section title="Session so far">
      <Numbers id={sessionOf(approval)} />
      {!mayRead && <p class="note">Reading the records of a session needs the role auditor.</p>}
      {error !== null && <Problem error={error} retry={reload} />}
      {data !== null && <Timeline entries={entriesOf(data.items.toReversed())} />}
      {data !== null && data.nextCursor !== null && <p class="faint">Only the last {RECORDS} records.</p>}
      <p>
        <a href={linkTo('sessions', sessionOf(approval))}>Whole timeline</a>
      </p>
    </Section>
  )
}

/** Labels, calls and costs of the session. */
function Numbers({ id }: { readonly id: string }) {
  const { client } = useShared()
  const { data } = useLoaded(`numbers ${id}`, (signal) => findSession(client, id, signal), {
    topics: ['session', 'approval', 'denial'],
  })
  if (data === null) return null
  const { taints, calls, denied, spent } = data
  return (
    <Facts>
      <Fact name="Taint labels">
        {taints.length === 0 ? (
          'none'
        ) : (
          <Badge tone="warn">
            <Name of={taints.join(', ')} />
          </Badge>
        )}
      </Fact>
      <Fact name="Calls">
        {count(calls)}, {count(denied)} denied
      </Fact>
      <Fact name="Spent">
        <Money micros={spent.micros} currency={spent.currency} />
      </Fact>
    </Facts>
  )
}
