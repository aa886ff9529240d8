import { useState } from 'preact/hooks'
import type { ApiError, Result } from '../../api/client.ts'
import { asApiError } from '../../app/query.ts'
import { linkTo } from '../../app/route.ts'
import { useShared } from '../../app/session.ts'
import { Fact, Facts, Problem, Section } from '../../ui/parts.tsx'
import { LongText, Name } from '../../ui/text.tsx'
import { Action } from './action.tsx'

type Tried = Result<'POST /v1/policies/try'>

const FIELDS = {
  agent: { label: 'Agent', hint: 'namespace/name', isNeeded: true },
  server: { label: 'Server', hint: '', isNeeded: true },
  tool: { label: 'Tool', hint: '', isNeeded: true },
  user: { label: 'User', hint: 'none', isNeeded: false },
  groups: { label: 'Groups', hint: 'a, b', isNeeded: false },
  taints: { label: 'Taint labels', hint: 'a, b', isNeeded: false },
} as const
type Field = keyof typeof FIELDS
const NAMES: readonly Field[] = ['agent', 'server', 'tool', 'user', 'groups', 'taints']

/** A form for a call that is not made. */
export function TryCall() {
  const { client } = useShared()
  const [fields, setFields] = useState<Readonly<Record<string, string>>>({ args: '{}' })
  const [tried, setTried] = useState<Tried | null>(null)
  const [error, setError] = useState<ApiError | null>(null)
  const [problem, setProblem] = useState<string | null>(null)
  const submit = async (event: Event) => {
    event.preventDefault()
    const body = bodyOf(fields)
    setProblem(typeof body === 'string' ? body : null)
    setError(null)
    setTried(null)
    if (typeof body === 'string') return
    try {
      setTried(await client.call('POST /v1/policies/try', { body }))
    } catch (cause) {
      setError(asApiError(cause))
    }
  }
  return (
    <Section title="Try a call">
      <form onSubmit={(event) => void submit(event)}>
        <Fields fields={fields} set={(name, value) => setFields({ ...fields, [name]: value })} />
        {problem !== null && (
          <p class="problem" role="alert">
            {problem}
          </p>
        )}
        {error !== null && <Problem error={error} />}
        <div class="actions">
          <button type="submit" class="primary">
            Try
          </button>
        </div>
      </form>
      {tried !== null && <Verdict tried={tried} />}
    </Section>
  )
}

interface FieldsProps {
  readonly fields: Readonly<Record<string, string>>
  readonly set: (name: string, value: string) => void
}

function Fields({ fields, set }: FieldsProps) {
  return (
    <>
      <div class="filters">
        {NAMES.map((name) => (
          <label class="field">
            <span>{FIELDS[name].label}</span>
            <input
              required={FIELDS[name].isNeeded}
              placeholder={FIELDS[name].hint}
              maxLength={1024}
              value={fields[name] ?? ''}
              onInput={(event) => set(name, event.currentTarget.value)}
            />
          </label>
        ))}
      </div>
      <label class="field">
        <span>Arguments (JSON object)</span>
        <textarea
          rows={3}
          spellcheck={false}
          class="code"
          value={fields.args ?? ''}
          onInput={(event) => set('args', event.currentTarget.value)}
        />
      </label>
    </>
  )
}

function Verdict({ tried: { action, code, policy, rule, reason, wouldBe } }: { readonly tried: Tried }) {
  return (
    <div role="status">
      <Facts>
        <Fact name="Verdict">
          <Action of={action} /> <Name of={code ?? ''} />
        </Fact>
        <Fact name="Policy and rule">
          {policy === null ? (
            'none'
          ) : (
            <>
              <a href={linkTo('policy', undefined, { policy })}>
                <Name of={policy} />
              </a>{' '}
              / <Name of={rule} />
            </>
          )}
        </Fact>
        <Fact name="Reason">{reason === '' ? 'none is given' : <LongText of={reason} />}</Fact>
        {wouldBe.length > 0 && (
          <Fact name="Policies in dryRun would say">
            <Name of={wouldBe.join(', ')} />
          </Fact>
        )}
      </Facts>
      <p class="faint">Nothing was called. Scopes, rates, budgets, pins and guards are not tried.</p>
    </div>
  )
}

/** The request, or what is wrong with the fields. */
function bodyOf(fields: Readonly<Record<string, string>>) {
  const { agent = '', server = '', tool = '', user = '', groups = '', taints = '', args = '' } = fields
  const [namespace = '', name = '', ...rest] = agent.trim().split('/')
  if (namespace === '' || name === '' || rest.length > 0) return 'Agent: write <namespace>/<name>.'
  const value = args.trim() === '' ? {} : objectIn(args)
  if (value === null) return 'Arguments: write a JSON object.'
  return {
    ...{ namespace, agent: name, server: server.trim(), tool: tool.trim(), arguments: value },
    ...(user.trim() !== '' && { user: user.trim() }),
    ...(groups.trim() !== '' && { groups: listIn(groups) }),
    ...(taints.trim() !== '' && { taints: listIn(taints) }),
  }
}

function listIn(text: string): readonly string[] {
  return text
    .split(',')
    .map((one) => one.trim())
    .filter((one) => one !== '')
}

/** The JSON object in a text, or null. */
export function objectIn(text: string): { readonly [name: string]: unknown } | null {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : null
  } catch {
    return null
  }
}
