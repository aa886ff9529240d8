import { textIn } from '../../api/client.ts'
import { useLoaded } from '../../app/query.ts'
import { linkTo } from '../../app/route.ts'
import { useShared } from '../../app/session.ts'
import { hitsOf } from '../../ui/hits.ts'
import { Json } from '../../ui/json.tsx'
import { Badge, PageHead, Problem, Section } from '../../ui/parts.tsx'
import { Name, Text } from '../../ui/text.tsx'
import { plainText } from '../../ui/visible.ts'
import { Anchor } from './anchor.tsx'
import { type Proof, type Step, verifyProof } from './verify.ts'

/** One record of the ledger, and its proof, which this browser verifies. */
export function RecordPage({ id }: { readonly id: string }) {
  const { client } = useShared()
  const { data, error, reload } = useLoaded(
    id,
    async (signal) => {
      const proof = await client.call('GET /v1/audit/proof/{seq}', { params: { seq: id }, signal })
      const { keys } = await client.call('GET /v1/audit/jwks', { signal })
      return { proof, steps: isSecure() ? await verifyProof(proof, keys) : null }
    },
    { topics: ['calls'] },
  )
  const number = /^\d{1,15}$/.test(id) ? Number(id) : null
  return (
    <>
      <PageHead title={`Record ${plainText(id)}`}>
        {data !== null && <Verdict steps={data.steps} />}
        {number !== null && number > 0 && <a href={linkTo('ledger', number - 1)}>Record before</a>}
        {number !== null && <a href={linkTo('ledger', number + 1)}>Next record</a>}
      </PageHead>
      {data === null && error === null && <p class="faint">Loading …</p>}
      {error !== null && <Problem error={error} retry={reload} />}
      {data !== null && <Found proof={data.proof} steps={data.steps} />}
    </>
  )
}

/** WebCrypto exists on https and on this machine alone. */
function isSecure(): boolean {
  return window.isSecureContext
}

function Verdict({ steps }: { readonly steps: readonly Step[] | null }) {
  if (steps === null) return <Badge tone="warn">not verified: the page is not loaded by https</Badge>
  const isProven = steps.every(({ isValid }) => isValid)
  return <Badge tone={isProven ? 'good' : 'bad'}>{isProven ? 'proven in this browser' : 'not proven'}</Badge>
}

function Found({ proof, steps }: { readonly proof: Proof; readonly steps: readonly Step[] | null }) {
  const text = recordIn(proof.line)
  const { namespace, agent, session, hits } = membersOf(text)
  return (
    <>
      <Section title="Record">
        {namespace !== null && agent !== null && session !== null && (
          <p>
            Session{' '}
            <a href={linkTo('sessions', `${namespace}/${agent}/${session}`)}>
              <Name of={`${namespace}/${agent}/${session}`} />
            </a>
          </p>
        )}
        {hits.map(({ tone, state, direction, detectors }) => (
          <p>
            <Badge tone={tone}>{state}</Badge> in the {direction}: <Name of={detectors} />
          </p>
        ))}
        <Json text={text} label="Record" />
      </Section>
      <Section title="Proof">
        <p>
          This browser computed each step from the bytes of the record, with the public keys of this gateway. An auditor
          repeats it with keys from elsewhere: <code>plat audit proof {proof.seq}</code>, or{' '}
          <a href={`/v1/audit/proof/${proof.seq}`} download={`receipt-${proof.seq}.json`}>
            download the receipt
          </a>
          .
        </p>
        {steps !== null && (
          <ol class="proof">
            {steps.map((step) => (
              <ProofStep step={step} />
            ))}
            <Anchor seq={proof.seq} />
          </ol>
        )}
      </Section>
    </>
  )
}

function ProofStep({ step: { name, isValid, parts } }: { readonly step: Step }) {
  return (
    <li>
      <p>
        <Badge tone={isValid ? 'good' : 'bad'}>{isValid ? 'valid' : 'wrong'}</Badge> {name}
      </p>
      <ul>
        {parts.map(({ label, value }) => (
          <li>
            <span class="faint">{label}</span>{' '}
            <code class="digest">
              <Text of={value.slice(0, 256)} />
            </code>
          </li>
        ))}
      </ul>
    </li>
  )
}

/** The record inside of a line, as it is written. */
function recordIn(line: string): string {
  return /"rec":(\{.*\}),"seq":\d+,"v":1\}$/s.exec(line)?.[1] ?? line
}

function membersOf(text: string) {
  const value: unknown = parsed(text)
  return {
    namespace: textIn(value, 'namespace'),
    agent: textIn(value, 'agent'),
    session: textIn(value, 'session'),
    hits: typeof value === 'object' && value !== null ? hitsOf(value) : [],
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}
