import { useState } from 'preact/hooks'
import { useShared } from '../../app/session.ts'
import { Confirm } from '../../ui/dialog.tsx'
import { counted } from '../../ui/format.ts'
import { Name } from '../../ui/text.tsx'
import { type Approval, sessionOf } from './model.ts'

export type Verdict = 'approve' | 'deny'

interface DecideProps {
  readonly approval: Approval
  readonly verdict: Verdict
  /** SHA-256 of the arguments, once all of a truncated preview was displayed. */
  readonly argsSha256: string | null
  readonly done: () => void
  readonly close: () => void
}

/** Approves or denies one call. */
export function Decide({ approval, verdict, argsSha256, done, close }: DecideProps) {
  const { client, notify } = useShared()
  const [scope, setScope] = useState<ScopeOfVote>('call')
  const { id, server, tool } = approval
  const decide = async (reason: string) => {
    const body = {
      ...(reason !== '' && { reason }),
      ...(verdict === 'approve' && argsSha256 !== null && { argsSha256 }),
      ...(verdict === 'approve' && scope === 'session' && { scope }),
    }
    const { state, missing } = await client.call(`POST /v1/approvals/{id}/${verdict}`, { params: { id }, body })
    notify(state === 'pending' ? `Your vote counts; ${counted(missing, 'more vote')} needed` : `The call is ${state}`)
    done()
  }
  const title = verdict === 'approve' ? 'Approve this call' : 'Deny this call'
  return (
    <Confirm
      title={title}
      action={verdict === 'approve' ? 'Approve' : 'Deny'}
      tone={verdict === 'approve' ? 'good' : 'bad'}
      reason="Reason (the agent receives it)"
      confirm={decide}
      close={close}
    >
      <p>
        <Name of={tool ?? approval.method} /> of <Name of={server} />, for <Name of={sessionOf(approval)} />
      </p>
      {verdict === 'approve' && approval.isRepeatable === true && <Scope scope={scope} choose={setScope} />}
    </Confirm>
  )
}

type ScopeOfVote = 'call' | 'session'

/** The choice between one call and the rest of its session. */
function Scope({ scope, choose }: { readonly scope: ScopeOfVote; readonly choose: (scope: ScopeOfVote) => void }) {
  const option = (value: ScopeOfVote, text: string) => (
    <label class="inline">
      <input type="radio" name="scope" checked={scope === value} onChange={() => choose(value)} />
      <span>{text}</span>
    </label>
  )
  return (
    <>
      <fieldset>
        <legend>Approve</legend>
        {option('call', 'this call')}
        {option('session', 'this call, and later calls of this tool in this session')}
      </fieldset>
      {scope === 'session' && (
        <p class="note">
          Later calls pass with any arguments, as long as the same rule requires the approval and the session gets no
          further label, not even by the result of this call. It ends with the session, after 12 hours, or when an
          approver lifts it. If several people must approve, each must choose this.
        </p>
      )}
    </>
  )
}

interface DenyAllProps {
  readonly approvals: readonly Approval[]
  readonly done: () => void
  readonly close: () => void
}

/** Denies every pending call of one session, one after the other, and says which could not be denied. */
export function DenyAll({ approvals, done, close }: DenyAllProps) {
  const { client, notify } = useShared()
  const [denied, setDenied] = useState(0)
  const [first] = approvals
  const deny = async (reason: string) => {
    let [count, failed] = [0, 0]
    for (const { id } of approvals) {
      try {
        await client.call('POST /v1/approvals/{id}/deny', { params: { id }, body: reason === '' ? {} : { reason } })
        setDenied(++count)
      } catch {
        failed++
      }
    }
    notify(
      `${counted(count, 'call')} denied${failed === 0 ? '' : `, ${counted(failed, 'call')} not: decided meanwhile, or not allowed`}`,
      failed === 0 ? 'good' : 'bad',
    )
    done()
  }
  return (
    <Confirm
      title={`Deny ${counted(approvals.length, 'pending call')} of this session`}
      action="Deny all"
      reason="Reason (the agent receives it)"
      confirm={deny}
      close={close}
    >
      <p>
        Session <Name of={first === undefined ? '' : sessionOf(first)} />
      </p>
      {denied > 0 && <p role="status">{counted(denied, 'call')} denied so far</p>}
    </Confirm>
  )
}
