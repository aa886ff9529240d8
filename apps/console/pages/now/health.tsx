import type { Result } from '../../api/client.ts'
import { linkTo } from '../../app/route.ts'
import { counted } from '../../ui/format.ts'
import { Badge, Fact, Facts, Section } from '../../ui/parts.tsx'
import { Name } from '../../ui/text.tsx'

type Now = Result<'GET /v1/now'>

/** Servers that are named; more are counted. */
const NAMED_MAX = 5

/** Health of the ledger, the state database, the sinks and the servers, as far as the person may see it. */
export function Health({ now: { problems, health, unreachable } }: { readonly now: Now }) {
  return (
    <>
      {(problems ?? []).length > 0 && (
        <p class="problem" role="alert">
          This gateway denies most calls at the moment: <Name of={(problems ?? []).join(', ')} />. See its log, and
          /readyz.
        </p>
      )}
      <Section title="Health">
        <Facts>
          {health !== null && <Parts health={health} />}
          <Fact name="MCP servers">
            <Servers unreachable={unreachable} />
          </Fact>
        </Facts>
      </Section>
    </>
  )
}

function Parts({ health: { ledger, state, sinks } }: { readonly health: NonNullable<Now['health']> }) {
  return (
    <>
      <Fact name="Ledger">
        {ledger ? <Badge tone="good">can be written</Badge> : <Badge tone="bad">cannot be written</Badge>}
      </Fact>
      <Fact name="State database">
        {state === null ? <Badge tone="good">can be used</Badge> : <Badge tone="bad">not usable</Badge>}{' '}
        {state !== null && <Name of={state} />}
      </Fact>
      {sinks.length === 0 && <Fact name="Audit sinks">none is configured</Fact>}
      {sinks.map(({ name, lag, isFailing }) => (
        <Fact name={`Audit sink ${name}`}>
          <Badge tone={isFailing ? 'bad' : 'good'}>{isFailing ? 'delivery fails, repeated' : 'delivers'}</Badge>{' '}
          {counted(lag, 'record')} behind
        </Fact>
      ))}
    </>
  )
}

function Servers({ unreachable }: { readonly unreachable: Now['unreachable'] }) {
  if (unreachable.length === 0) return <Badge tone="good">none is known to be unreachable</Badge>
  return (
    <>
      <a href={linkTo('servers')}>
        <Badge tone="bad">{counted(unreachable.length, 'server')} unreachable</Badge>
      </a>
      {unreachable.slice(0, NAMED_MAX).map(({ id, reason }) => (
        <div key={id}>
          <Name of={id} />: {reason}
        </div>
      ))}
    </>
  )
}
