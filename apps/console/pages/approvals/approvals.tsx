import { usePages } from '../../app/query.ts'
import { goTo, linkTo } from '../../app/route.ts'
import { useShared } from '../../app/session.ts'
import { Badge, PageHead, Time, TimeLeft } from '../../ui/parts.tsx'
import { type Column, NoRows, Table } from '../../ui/table.tsx'
import { Name } from '../../ui/text.tsx'
import { plainText } from '../../ui/visible.ts'
import { ForSessions } from './for-sessions.tsx'
import { type Approval, sessionOf, TONES } from './model.ts'

const STATES = ['pending', 'approved', 'used', 'denied', 'expired', 'cancelled'] as const
const PAGE_SIZE = 100

/** Calls that wait for a person, and those that were decided. */
export function ApprovalsPage({ query }: { readonly query: URLSearchParams }) {
  const { client } = useShared()
  const state = query.get('state') ?? 'pending'
  const session = query.get('session') ?? ''
  const pages = usePages(
    `${state} ${session}`,
    (cursor, signal) =>
      client.call('GET /v1/approvals', {
        query: { state: state === 'all' ? '' : state, session, limit: PAGE_SIZE, ...(cursor && { cursor }) },
        signal,
      }),
    ['approval'],
  )
  const show = (changed: Readonly<Record<string, string>>) =>
    goTo(linkTo('approvals', undefined, { state, session, ...changed }), { replace: true })
  return (
    <>
      <PageHead title="Approvals">
        <label class="inline">
          State
          <select value={state} onChange={(event) => show({ state: event.currentTarget.value })}>
            {[...STATES, 'all'].map((name) => (
              <option value={name}>{name}</option>
            ))}
          </select>
        </label>
        {session !== '' && (
          <button type="button" class="small" onClick={() => show({ session: '' })}>
            Only session {plainText(session, 40)}: show all
          </button>
        )}
      </PageHead>
      <ForSessions only={session === '' ? {} : { session }} />
      <Table
        label="Approvals"
        columns={state === 'pending' ? COLUMNS : [...COLUMNS.slice(0, 4), DECIDED]}
        pages={pages}
        keyOf={({ id }) => id}
        open={({ id }) => goTo(linkTo('approvals', id))}
        empty={
          state === 'pending' ? (
            <NoRows title="No call waits for a decision">
              Calls that match a rule with action require_approval appear here by themselves.
            </NoRows>
          ) : (
            <NoRows title={`No approval is ${state}`}>Choose another state.</NoRows>
          )
        }
      />
    </>
  )
}

const COLUMNS: readonly Column<Approval>[] = [
  {
    name: 'Tool',
    width: '2fr',
    isMain: true,
    isTitle: true,
    cell: ({ id, tool, method, server }) => (
      <a href={linkTo('approvals', id)} title={plainText(`${server}/${tool ?? method}`)}>
        <Name of={`${server}/${tool ?? method}`} />
      </a>
    ),
  },
  { name: 'Session', width: '2fr', cell: (approval) => <Name of={sessionOf(approval)} /> },
  { name: 'For', width: '1fr', isMain: true, cell: ({ user }) => <Name of={user} /> },
  { name: 'Requested', width: '8rem', cell: ({ createdAt }) => <Time at={createdAt} /> },
  { name: 'Votes', width: '5rem', isNumber: true, cell: ({ quorum: { given, needed } }) => `${given} of ${needed}` },
  {
    name: 'Time left',
    width: '9rem',
    isMain: true,
    isNumber: true,
    cell: ({ expiresAt }) => <TimeLeft until={expiresAt} />,
  },
]

const DECIDED: Column<Approval> = {
  name: 'State',
  width: '7rem',
  isMain: true,
  cell: ({ state }) => <Badge tone={TONES[state]}>{state}</Badge>,
}
