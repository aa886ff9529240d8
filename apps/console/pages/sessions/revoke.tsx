import { useState } from 'preact/hooks'
import type { Result } from '../../api/client.ts'
import { useShared } from '../../app/session.ts'
import { Confirm } from '../../ui/dialog.tsx'
import { counted } from '../../ui/format.ts'
import { Badge, Fact, Facts, Time } from '../../ui/parts.tsx'
import { LongText, Name } from '../../ui/text.tsx'
import { WouldEnd } from '../access/preview.tsx'
import type { Session } from './sessions.tsx'

type Revocation = Result<'GET /v1/revocations'>['items'][number]

interface RevokeProps {
  readonly id: string
  /** Null if the gateway does not list the session. */
  readonly session: Session | null
  readonly done: () => void
  readonly close: () => void
}

/** Revokes a session, or its whole agent, after it says what this ends. */
export function Revoke({ id, session, done, close }: RevokeProps) {
  const { client, notify } = useShared()
  const [scope, setScope] = useState<'session' | 'agent'>('session')
  const [mode, setMode] = useState<'revoke' | 'suspend'>('revoke')
  const agent = id.split('/').slice(0, 2).join('/')
  const revoke = async (reason: string) => {
    const target = scope === 'session' ? { session: id } : { agent }
    const { cut } = await client.call('POST /v1/revocations', {
      body: { target, mode, ...(reason !== '' && { reason }) },
    })
    notify(`Revoked; ${counted(cut ?? 0, 'running call')} ended`)
    done()
  }
  return (
    <Confirm title="Revoke" action="Revoke" reason="Reason (in the ledger)" confirm={revoke} close={close}>
      <fieldset>
        <legend>What</legend>
        <label class="inline">
          <input type="radio" name="scope" checked={scope === 'session'} onChange={() => setScope('session')} />
          <span>
            this session, <Name of={id} />
          </span>
        </label>
        <label class="inline">
          <input type="radio" name="scope" checked={scope === 'agent'} onChange={() => setScope('agent')} />
          <span>
            every session of the agent <Name of={agent} />
          </span>
        </label>
      </fieldset>
      <label class="inline">
        <input
          type="checkbox"
          checked={mode === 'suspend'}
          onChange={(event) => setMode(event.currentTarget.checked ? 'suspend' : 'revoke')}
        />
        <span>Suspend only: a sandbox of it is stopped and can resume after the revocation is lifted</span>
      </label>
      <WouldEnd target={scope === 'session' ? { session: id } : { agent }} />
      {scope === 'session' && session !== null && (
        <p class="faint">
          {counted(session.calls, 'call')} so far; the last one was <Time at={session.lastActivity} />.
        </p>
      )}
    </Confirm>
  )
}

/** A revocation in force, with a button that lifts it. */
export function Lift({ revocation, done }: { readonly revocation: Revocation; readonly done: () => void }) {
  const { client, notify, session } = useShared()
  const [open, setOpen] = useState(false)
  const { id, mode, reason, createdAt, expiresAt, source } = revocation
  const lift = async () => {
    await client.call('DELETE /v1/revocations/{id}', { params: { id } })
    notify('The revocation is lifted')
    done()
  }
  const mayLift = source !== 'file' && (session.roles.includes('killswitch') || session.roles.includes('admin'))
  return (
    <div class="panel bad">
      <Facts>
        <Fact name="Revocation">
          <Badge tone="bad">{mode}</Badge> <Time at={createdAt} full />
        </Fact>
        <Fact name="Reason">{reason === '' ? 'none is given' : <LongText of={reason} />}</Fact>
        <Fact name="Ends">{expiresAt === null ? 'when it is lifted' : <Time at={expiresAt} full />}</Fact>
      </Facts>
      {mayLift && (
        <button type="button" onClick={() => setOpen(true)}>
          Lift …
        </button>
      )}
      {open && (
        <Confirm title="Lift the revocation" action="Lift" tone="good" confirm={lift} close={() => setOpen(false)}>
          <p>Tokens of this session that have not expired can call again at once.</p>
        </Confirm>
      )}
    </div>
  )
}
