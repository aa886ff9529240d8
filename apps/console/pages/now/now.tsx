import { type Result, textIn } from '../../api/client.ts'
import { now as currentTime } from '../../app/clock.ts'
import { useLoaded } from '../../app/query.ts'
import { linkTo } from '../../app/route.ts'
import { hasRole, useShared } from '../../app/session.ts'
import { count, counted, money } from '../../ui/format.ts'
import { Badge, Empty, PageHead, Problem, Section, Time } from '../../ui/parts.tsx'
import { Name } from '../../ui/text.tsx'
import { sum, Totals } from '../costs/totals.ts'
import { Health } from './health.tsx'

/** Calls of this long are added up. */
const LAST_MS = 5 * 60_000
const PAGE_SIZE = 1_000
const FIRST = 8
const TOPICS = ['approval', 'session', 'revocation', 'denial', 'calls', 'health', 'budget', 'pin'] as const

/** The state of the last minutes; everything links to its page. */
export function NowPage() {
  const { session } = useShared()
  const mayRead = hasRole(session, 'auditor')
  return (
    <>
      <PageHead title="Now" />
      <Waiting />
      {mayRead ? (
        <LastMinutes />
      ) : (
        <p class="note">The calls, refusals and costs of the last minutes need the role auditor.</p>
      )}
      <Drift />
    </>
  )
}

/** Pending approvals and revocations. */
function Waiting() {
  const { client } = useShared()
  const { data, error, reload } = useLoaded(
    'waiting',
    async (signal) => {
      const [running, approvals, revocations] = await Promise.all([
        client.call('GET /v1/now', { signal }),
        client.call('GET /v1/approvals', { query: { state: 'pending', limit: 100 }, signal }),
        client.call('GET /v1/revocations', { query: { limit: 100 }, signal }),
      ])
      return { running, approvals, revocations }
    },
    { topics: TOPICS },
  )
  if (data === null) return error === null ? <p class="faint">Loading …</p> : <Problem error={error} retry={reload} />
  const { running, approvals, revocations } = data
  const { calls, sessions } = running
  return (
    <>
      <div class="tiles">
        <Tile
          name="Calls that wait for a decision"
          value={atLeast(approvals)}
          tone={approvals.items.length > 0 ? 'warn' : 'good'}
          link={linkTo('approvals')}
        />
        <Tile
          name="Revocations in force"
          value={atLeast(revocations)}
          tone={revocations.items.length > 0 ? 'bad' : 'good'}
          link={linkTo('access')}
        />
        <Tile
          name={`Running calls of ${counted(sessions, 'session')}, ${counted(calls.long, 'open stream')}`}
          value={count(calls.total)}
          tone="neutral"
          link={linkTo('sessions')}
        />
      </div>
      <Health now={running} />
      {approvals.items.length > 0 && (
        <Section title="Waiting for a decision">
          <ul class="plain">
            {approvals.items
              .slice(0, FIRST)
              .map(({ id, server, tool, method, namespace, agent, session, createdAt }) => (
                <li key={id}>
                  <a href={linkTo('approvals', id)}>
                    <Name of={`${server}/${tool ?? method}`} />
                  </a>{' '}
                  of <Name of={`${namespace}/${agent}/${session}`} />, <Time at={createdAt} />
                </li>
              ))}
          </ul>
        </Section>
      )}
    </>
  )
}

function atLeast({
  items,
  nextCursor,
}: {
  readonly items: readonly unknown[]
  readonly nextCursor: string | null
}): string {
  return `${count(items.length)}${nextCursor === null ? '' : ' or more'}`
}

function Tile({
  name,
  value,
  tone,
  link,
}: {
  readonly name: string
  readonly value: string
  readonly tone: string
  readonly link: string
}) {
  return (
    <a class={`tile ${tone}`} href={link}>
      <span class="tile-value">{value}</span>
      <span>{name}</span>
    </a>
  )
}

function LastMinutes() {
  const { client } = useShared()
  const { data, error, reload } = useLoaded(
    'minutes',
    async (signal) => {
      const from = new Date(currentTime() - LAST_MS).toISOString()
      const query = { from, order: 'newest', limit: PAGE_SIZE } as const
      const [calls, denied, head] = await Promise.all([
        client.call('GET /v1/audit/records', { query: { ...query, calls: true }, signal }),
        client.call('GET /v1/audit/records', { query: { ...query, denied: true }, signal }),
        client.call('GET /v1/audit/head', { signal }),
      ])
      return { calls, denied, head }
    },
    { topics: TOPICS },
  )
  if (data === null) return error === null ? <p class="faint">Loading …</p> : <Problem error={error} retry={reload} />
  const { calls, denied, head } = data
  const totals = new Totals()
  totals.add(calls.items)
  const agents = totals.by('agent')
  const damaged = head.damagedSegments.length
  return (
    <>
      <h2>Last five minutes</h2>
      <div class="tiles">
        <Tile
          name="Calls ended"
          value={atLeast(calls)}
          tone="info"
          link={linkTo('ledger', undefined, { only: 'calls' })}
        />
        <Tile
          name="Refusals"
          value={atLeast(denied)}
          tone={denied.items.length > 0 ? 'warn' : 'good'}
          link={linkTo('ledger', undefined, { only: 'denied' })}
        />
        <Tile
          name="Spent"
          value={spentText(agents)}
          tone="info"
          link={linkTo('costs', undefined, { period: '1 hour' })}
        />
        <Tile
          name={damaged === 0 ? 'Records in the ledger' : `Records in the ledger, ${count(damaged)} segments damaged`}
          value={count(head.seq + 1)}
          tone={damaged === 0 ? 'good' : 'bad'}
          link={linkTo('ledger')}
        />
      </div>
      <Refusals lines={denied.items} />
    </>
  )
}

function Refusals({ lines }: { readonly lines: Result<'GET /v1/audit/records'>['items'] }) {
  return (
    <Section title="Refusals">
      {lines.length === 0 && <Empty title="No call was refused" />}
      <ul class="plain">
        {lines.slice(0, FIRST).map(({ seq, rec }) => (
          <li key={seq}>
            <a href={linkTo('ledger', seq)}>
              <Name of={textIn(rec, 'code') ?? rec.kind} />
            </a>{' '}
            <Name of={[textIn(rec, 'server'), textIn(rec, 'tool')].filter((part) => part !== null).join('/')} /> of{' '}
            <Name
              of={[textIn(rec, 'namespace'), textIn(rec, 'agent'), textIn(rec, 'session')]
                .filter((part) => part !== null)
                .join('/')}
            />
            , <Time at={rec.at} />
          </li>
        ))}
      </ul>
    </Section>
  )
}

function spentText(agents: ReturnType<Totals['by']>): string {
  const currency = agents.flatMap(({ micros }) => [...micros.keys()])[0] ?? ''
  const micros = agents.reduce((all, total) => all + sum(total), 0)
  return micros === 0 ? 'nothing' : money(micros, currency)
}

/** Servers whose tools changed. */
function Drift() {
  const { client } = useShared()
  const { data } = useLoaded('drift', (signal) => client.call('GET /v1/pins', { query: { limit: 200 }, signal }), {
    topics: ['pin'],
  })
  const changed = data?.items.filter(({ driftedTools }) => driftedTools.length > 0) ?? []
  if (changed.length === 0) return null
  return (
    <Section title="Tools that changed">
      <ul class="plain">
        {changed.map(({ id, driftedTools }) => (
          <li key={id}>
            <a href={linkTo('servers', id)}>
              <Name of={id} />
            </a>{' '}
            <Badge tone="bad">
              <Name of={driftedTools.join(', ')} />
            </Badge>
          </li>
        ))}
      </ul>
    </Section>
  )
}
