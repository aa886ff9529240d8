import { useState } from 'preact/hooks'
import { useShared } from '../../app/session.ts'
import { Confirm } from '../../ui/dialog.tsx'
import { counted } from '../../ui/format.ts'
import { WouldEnd } from './preview.tsx'

/** Kinds of targets, with what a value of each looks like. */
const KINDS = {
  session: '<namespace>/<agent>/<session>',
  agent: '<namespace>/<agent>',
  namespace: 'name of the namespace',
  user: 'name, or <issuer>#<name>',
  jti: 'ID of a token',
} as const
type Kind = keyof typeof KINDS

function isKind(text: string): text is Kind {
  return Object.hasOwn(KINDS, text)
}

/** Revokes any target. */
export function NewRevocation({ done, close }: { readonly done: () => void; readonly close: () => void }) {
  const { client, notify } = useShared()
  const [kind, setKind] = useState<Kind>('session')
  const [value, setValue] = useState('')
  const [previewed, setPreviewed] = useState('')
  const revoke = async (reason: string) => {
    const { cut } = await client.call('POST /v1/revocations', {
      body: { target: { [kind]: value.trim() }, ...(reason !== '' && { reason }) },
    })
    notify(`Revoked; ${counted(cut ?? 0, 'running call')} ended`)
    done()
  }
  return (
    <Confirm title="Revoke" action="Revoke" reason="Reason (in the ledger)" confirm={revoke} close={close}>
      <label class="field">
        <span>What</span>
        <select
          value={kind}
          onChange={({ currentTarget }) => {
            if (isKind(currentTarget.value)) setKind(currentTarget.value)
          }}
        >
          {Object.keys(KINDS).map((name) => (
            <option value={name}>{name === 'jti' ? 'one token' : name}</option>
          ))}
        </select>
      </label>
      <label class="field">
        <span>{KINDS[kind]}</span>
        <input required maxLength={800} value={value} onInput={(event) => setValue(event.currentTarget.value)} />
      </label>
      <p>
        Its running calls and streams are aborted, its pending approvals are withdrawn, and further calls are refused
        until the revocation is lifted.
      </p>
      {previewed === value.trim() && previewed !== '' ? (
        <WouldEnd target={{ [kind]: previewed }} />
      ) : (
        <button type="button" class="small" disabled={value.trim() === ''} onClick={() => setPreviewed(value.trim())}>
          Show what this ends
        </button>
      )}
    </Confirm>
  )
}
