import { useEffect, useRef, useState } from 'preact/hooks'
import { useLoaded } from '../../app/query.ts'
import { goTo, linkTo } from '../../app/route.ts'
import { hasRole, useShared } from '../../app/session.ts'
import { Badge, Fact, Facts, PageHead, Problem, Section, Time, TimeLeft } from '../../ui/parts.tsx'
import { LongText, Name, Text } from '../../ui/text.tsx'
import { Arguments } from './arguments.tsx'
import { Decide, DenyAll, type Verdict } from './decide.tsx'
import { type Approval, sessionOf, TONES, type VisibleArguments, visibleArguments } from './model.ts'
import { SoFar } from './so-far.tsx'

/** One approval: everything that a decision needs, and the decision. */
export function ApprovalPage({ id }: { readonly id: string }) {
  const { client } = useShared()
  const { data, error, reload } = useLoaded(
    id,
    (signal) => client.call('GET /v1/approvals/{id}', { params: { id }, signal }),
    { topics: ['approval'] },
  )
  if (data === null && error !== null) {
    return (
      <>
        <PageHead title="Approval" />
        <Problem error={error} retry={reload} />
      </>
    )
  }
  if (data === null) return <p class="faint">Loading …</p>
  return <Found approval={data} reload={reload} />
}

function Found({ approval, reload }: { readonly approval: Approval; readonly reload: () => void }) {
  const { client } = useShared()
  const visible = useLoaded(`${approval.id} ${approval.state === 'pending'}`, (signal) =>
    visibleArguments(client, approval, signal),
  )
  const { state, server, tool, method, expiresAt } = approval
  return (
    <>
      <PageHead
        title={
          <>
            <Name of={tool ?? method} /> <span class="faint">of</span> <Name of={server} />
          </>
        }
      >
        <Badge tone={TONES[state]}>{state}</Badge>
        {state === 'pending' && <TimeLeft until={expiresAt} />}
      </PageHead>
      <Decisions approval={approval} visible={visible.data} isLoaded={!visible.loading} reload={reload} />
      <Why approval={approval} />
      <Arguments approval={approval} visible={visible.data} isLoaded={!visible.loading} />
      <Votes approval={approval} />
      <SoFar approval={approval} />
    </>
  )
}

interface DecisionProps {
  readonly approval: Approval
  readonly visible: VisibleArguments | null
  readonly isLoaded: boolean
  readonly reload: () => void
}

/** The buttons and keys of a decision: `a` approves and `d` denies, each after a confirmation. */
function Decisions({ approval, visible, isLoaded, reload }: DecisionProps) {
  const { session, client } = useShared()
  const [open, setOpen] = useState<Verdict | 'all' | null>(null)
  const others = useLoaded(`others ${approval.id}`, (signal) => pendingOf(client, approval, signal), {
    topics: ['approval'],
  })
  const mayDecide = approval.state === 'pending' && hasRole(session, 'approver')
  const isCut = approval.preview?.truncated === true
  const mayApprove = mayDecide && isLoaded && (!isCut || visible?.isWhole === true)
  useKeys({
    a: mayApprove && open === null ? () => setOpen('approve') : null,
    d: mayDecide && open === null ? () => setOpen('deny') : null,
  })
  if (approval.state !== 'pending') return null
  if (!mayDecide) return <p class="note">You can read this approval. Deciding needs the role approver.</p>
  const pending = others.data ?? []
  const close = () => setOpen(null)
  const done = () => {
    reload()
    others.reload()
  }
  const argsSha256 = isCut ? approval.argsSha256 : null
  return (
    <>
      <div class="decisions">
        <button type="button" class="primary" disabled={!mayApprove} onClick={() => setOpen('approve')}>
          Approve <kbd>a</kbd>
        </button>
        <button type="button" class="danger" onClick={() => setOpen('deny')}>
          Deny <kbd>d</kbd>
        </button>
        {pending.length > 1 && (
          <button type="button" onClick={() => setOpen('all')}>
            Deny all {pending.length} pending calls of this session
          </button>
        )}
      </div>
      {isLoaded && isCut && visible?.isWhole !== true && <CutNote />}
      {(open === 'approve' || open === 'deny') && <Decide {...{ approval, argsSha256, done, close }} verdict={open} />}
      {open === 'all' && <DenyAll approvals={pending} close={close} done={() => goTo(linkTo('approvals'))} />}
    </>
  )
}

function CutNote() {
  return (
    <p class="note">
      The arguments are longer than what the gateway stored, so they cannot be read here: approve with plat approvals
      approve -args-sha256 if you know them, or deny.
    </p>
  )
}

/** Calls back for keys that are pressed outside of fields and dialogs. */
function useKeys(actions: Readonly<Record<string, (() => void) | null>>): void {
  const latest = useRef(actions)
  latest.current = actions
  useEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      const isTyping = event.target instanceof Element && event.target.closest('input,textarea,select,dialog') !== null
      if (isTyping || event.ctrlKey || event.metaKey || event.altKey || event.repeat) return
      latest.current[event.key]?.()
    }
    window.addEventListener('keydown', pressed)
    return () => window.removeEventListener('keydown', pressed)
  }, [])
}

async function pendingOf(
  client: ReturnType<typeof useShared>['client'],
  { namespace, agent, session }: Approval,
  signal: AbortSignal,
): Promise<readonly Approval[]> {
  const { items } = await client.call('GET /v1/approvals', {
    query: { state: 'pending', namespace, agent, session, limit: 100 },
    signal,
  })
  return items
}

function Why({ approval }: { readonly approval: Approval }) {
  const { user, policy, rule, reason, createdAt, expiresAt, state, method, id } = approval
  return (
    <Section title="Who and why">
      <Facts>
        <Fact name="Session">
          <a href={linkTo('sessions', sessionOf(approval))}>
            <Name of={sessionOf(approval)} />
          </a>
        </Fact>
        <Fact name="For">{user === null ? 'no user' : <Name of={user} />}</Fact>
        <Fact name="Method">
          <Name of={method} />
        </Fact>
        <Fact name="Policy and rule">
          <Name of={policy} /> / <Name of={rule} />
        </Fact>
        <Fact name="Reason of the rule">{reason === '' ? 'none is given' : <LongText of={reason} />}</Fact>
        <Fact name="Requested">
          <Time at={createdAt} full />
        </Fact>
        {state === 'pending' && (
          <Fact name="Expires">
            <Time at={expiresAt} full />
          </Fact>
        )}
        <Fact name="ID">
          <code>
            <Text of={id} />
          </code>
        </Fact>
      </Facts>
    </Section>
  )
}

function Votes({ approval: { quorum } }: { readonly approval: Approval }) {
  const { given, needed, approverGroups, userConfirmation, votes } = quorum
  return (
    <Section title="Votes">
      <p>
        {given} of {needed} needed
        {approverGroups.length > 0 && `, each by a member of ${approverGroups.join(' or ')}`}
        {userConfirmation !== null &&
          `; confirmation by the user: ${userConfirmation.state === 'asked' ? 'requested' : userConfirmation.state}`}
        {userConfirmation?.code && `, code ${userConfirmation.code}`}
      </p>
      {votes.length > 0 && (
        <ul class="votes">
          {votes.map(({ by, verdict, reason, at, via, scope }) => (
            <li>
              <Badge tone={verdict === 'approve' ? 'good' : 'bad'}>{verdict}</Badge>
              {scope === 'session' && ' for the session'} <Name of={by} /> <Time at={at} />
              {via !== undefined && ` via ${via}`}
              {reason !== '' && <LongText of={reason} />}
            </li>
          ))}
        </ul>
      )}
    </Section>
  )
}
