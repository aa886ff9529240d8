import type { Result } from '../../api/client.ts'
import { useLoaded } from '../../app/query.ts'
import { linkTo } from '../../app/route.ts'
import { useShared } from '../../app/session.ts'
import { counted } from '../../ui/format.ts'
import { Problem } from '../../ui/parts.tsx'
import { Name } from '../../ui/text.tsx'

type Preview = Result<'POST /v1/revocations/preview'>
type Target = { readonly [scope in 'session' | 'agent' | 'namespace' | 'user' | 'jti']?: string }

/** Sessions that are listed; more are counted. */
const SHOWN_MAX = 10

/** The calls and sessions that a revocation of this target would end on the gateway at this moment. */
export function WouldEnd({ target }: { readonly target: Target }) {
  const { client } = useShared()
  const { data, error, loading } = useLoaded(
    `preview ${JSON.stringify(target)}`,
    (signal) => client.call('POST /v1/revocations/preview', { body: { target }, signal }),
    { topics: ['session', 'approval', 'calls'] },
  )
  if (error !== null) return <Problem error={error} />
  if (data === null) return loading ? <p class="faint">Loading what this ends …</p> : null
  return <Ends preview={data} />
}

function Ends({ preview: { calls, tokens, sessions, pendingApprovals } }: { readonly preview: Preview }) {
  const listed = sessions.items.slice(0, SHOWN_MAX)
  return (
    <>
      <p role="status">On this gateway, this ends at once:</p>
      <ul>
        <li>
          {counted(calls.total, 'running call')} ({counted(calls.long, 'open stream')}) of {counted(tokens, 'token')},
        </li>
        <li>{counted(pendingApprovals, 'pending approval')}, withdrawn,</li>
        <li>
          {counted(sessions.total, 'session')}
          {sessions.delegated > 0 && `, ${sessions.delegated} of them by delegation`}
          {sessions.forked > 0 && `, ${counted(sessions.forked, 'fork')}`}: further calls are refused until it is
          lifted.
        </li>
      </ul>
      {listed.length > 0 && (
        <ul class="votes">
          {listed.map(({ id, user, relation, calls: running }) => (
            <li key={id}>
              <a href={linkTo('sessions', id)}>
                <Name of={id} />
              </a>
              {relation !== 'own' && ` (${relation})`}, {user === null ? 'no user' : <Name of={user} />},{' '}
              {counted(running, 'running call')}
            </li>
          ))}
        </ul>
      )}
      {sessions.total > listed.length && (
        <p class="faint">and {counted(sessions.total - listed.length, 'more session')}</p>
      )}
    </>
  )
}
