import { useState } from 'preact/hooks'
import type { Result } from '../../api/client.ts'
import { useLoaded } from '../../app/query.ts'
import { linkTo } from '../../app/route.ts'
import { hasRole, useShared } from '../../app/session.ts'
import { Confirm } from '../../ui/dialog.tsx'
import { count } from '../../ui/format.ts'
import { Badge, Problem, Section, Time } from '../../ui/parts.tsx'
import { Name } from '../../ui/text.tsx'
import { sessionOf } from './model.ts'

type SessionApproval = Result<'GET /v1/session-approvals'>['items'][number]

/** Approvals that are displayed; more are counted. */
const SHOWN_MAX = 50

interface Filter {
  readonly namespace?: string
  readonly agent?: string
  readonly session?: string
}

/** Approvals for the rest of a session that are in force, each with a button that lifts it. Nothing if there is none. */
export function ForSessions({ only }: { readonly only: Filter }) {
  const { client } = useShared()
  const { data, error, reload } = useLoaded(
    `for sessions ${JSON.stringify(only)}`,
    (signal) => client.call('GET /v1/session-approvals', { query: { ...only, limit: SHOWN_MAX }, signal }),
    { topics: ['approval', 'session', 'revocation'] },
  )
  if (error !== null) return <Problem error={error} retry={reload} />
  if (data === null || data.items.length === 0) return null
  return (
    <Section title="Approved for the rest of a session">
      <ul class="votes">
        {data.items.map((one) => (
          <li key={one.id}>
            <Line approval={one} done={reload} />
          </li>
        ))}
      </ul>
      {data.nextCursor !== null && (
        <p class="faint">The newest {count(SHOWN_MAX)}; plat approvals sessions lists all.</p>
      )}
    </Section>
  )
}

function Line({ approval, done }: { readonly approval: SessionApproval; readonly done: () => void }) {
  const { client, notify, session } = useShared()
  const [open, setOpen] = useState(false)
  const { id, server, tool, rule, by, taints, newTaints = [], createdAt, expiresAt } = approval
  const lift = async () => {
    await client.call('DELETE /v1/session-approvals/{id}', { params: { id } })
    notify('Lifted: later calls need an approval again')
    done()
  }
  return (
    <>
      <Name of={`${server}/${tool}`} /> in{' '}
      <a href={linkTo('sessions', sessionOf(approval))}>
        <Name of={sessionOf(approval)} />
      </a>
      , rule <Name of={rule} />, by <Name of={by.join(', ')} /> <Time at={createdAt} />; ends with the session, at the
      latest <Time at={expiresAt} />
      {taints.length > 0 && (
        <>
          ; labels <Name of={taints.join(', ')} />
        </>
      )}
      {newTaints.length > 0 && (
        <>
          ; <Badge tone="warn">not in force</Badge> since the session has got the label{' '}
          <Name of={newTaints.join(', ')} />: the next call waits for an approval
        </>
      )}{' '}
      {hasRole(session, 'approver') && (
        <button type="button" class="small" onClick={() => setOpen(true)}>
          Lift …
        </button>
      )}
      {open && (
        <Confirm title="Lift this approval" action="Lift" confirm={lift} close={() => setOpen(false)}>
          <p>
            Later calls of <Name of={`${server}/${tool}`} /> in this session wait for an approval again. Calls that have
            passed go on.
          </p>
        </Confirm>
      )}
    </>
  )
}
