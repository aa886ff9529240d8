import { useState } from 'preact/hooks'
import { useLoaded } from '../../app/query.ts'
import { linkTo } from '../../app/route.ts'
import { useShared } from '../../app/session.ts'
import { bytes } from '../../ui/format.ts'
import { Json } from '../../ui/json.tsx'
import { Section, Time } from '../../ui/parts.tsx'
import { type Approval, previousApproval, type VisibleArguments } from './model.ts'

/** The arguments of the call, as the gateway lets approvers see them, beside those of the last approved call of the same tool. */
export function Arguments({
  approval,
  visible,
  isLoaded,
}: {
  readonly approval: Approval
  readonly visible: VisibleArguments | null
  readonly isLoaded: boolean
}) {
  const { client } = useShared()
  const [isCompared, setCompared] = useState(true)
  const { data: previous } = useLoaded(`previous ${approval.id}`, (signal) =>
    previousApproval(client, approval, signal),
  )
  const before = isCompared && previous?.preview?.truncated === false ? previous.preview.text : undefined
  const { argsBytes, argsSha256, preview } = approval
  return (
    <Section title="Arguments">
      <p class="faint">
        {bytes(argsBytes)}
        {preview !== null &&
          preview.mode !== 'full' &&
          `, ${preview.mode === 'hash' ? 'only their digest is stored' : 'redacted'}`}
        {argsSha256 !== null && (
          <>
            {' · SHA-256 '}
            <code class="digest">{argsSha256}</code>
          </>
        )}
      </p>
      {previous !== null && (
        <label class="inline">
          <input type="checkbox" checked={isCompared} onChange={(event) => setCompared(event.currentTarget.checked)} />
          <span>
            Mark what changed since <a href={linkTo('approvals', previous.id)}>the call approved</a>{' '}
            <Time at={previous.createdAt} />
          </span>
        </label>
      )}
      {!isLoaded && visible === null && <p class="faint">Loading …</p>}
      {visible !== null && <Json text={visible.text} before={before} label="Arguments" />}
      {visible !== null && !visible.isWhole && <p class="note">This is only the beginning of the arguments.</p>}
      {isLoaded && visible === null && (
        <p class="note">The gateway shows no arguments to approvers: approvalPreview.mode decides this.</p>
      )}
    </Section>
  )
}
