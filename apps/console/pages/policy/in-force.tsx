import type { Result } from '../../api/client.ts'
import { usePages } from '../../app/query.ts'
import { goTo, linkTo } from '../../app/route.ts'
import { useShared } from '../../app/session.ts'
import { absoluteTime, count } from '../../ui/format.ts'
import { Json } from '../../ui/json.tsx'
import { Badge, Section } from '../../ui/parts.tsx'
import { type Column, NoRows, Table } from '../../ui/table.tsx'
import { Name } from '../../ui/text.tsx'
import { plainText } from '../../ui/visible.ts'
import { Action } from './action.tsx'

type Policy = Result<'GET /v1/policies'>['items'][number]
type Rule = Policy['rules'][number]

/** A rule of a policy, or its default. */
interface Row {
  readonly policy: Policy
  readonly rule: Rule | null
}

const PAGE_SIZE = 100

/** Every policy as written, with how many calls each rule has decided on this gateway. */
export function InForce({ chosen }: { readonly chosen: string }) {
  const { client } = useShared()
  const pages = usePages(
    'policies',
    (cursor, signal) =>
      client.call('GET /v1/policies', { query: { limit: PAGE_SIZE, ...(cursor && { cursor }) }, signal }),
    ['calls', 'denial'],
  )
  const policy = pages.data?.find(({ id }) => id === chosen)
  return (
    <>
      <Section title="Policies in force">
        <Table
          label="Rules of policies"
          columns={COLUMNS}
          pages={{ ...pages, data: pages.data?.flatMap(rowsOf) ?? null }}
          keyOf={({ policy: { id }, rule }) => `${id}#${rule?.name ?? ''}`}
          open={({ policy: { id } }) => goTo(linkTo('policy', undefined, { policy: id }))}
          empty={
            <NoRows title="No policy is in force">Every call is denied until a ToolPolicy governs its agent.</NoRows>
          }
        />
      </Section>
      {policy !== undefined && <AsWritten policy={policy} />}
    </>
  )
}

function AsWritten({ policy }: { readonly policy: Policy }) {
  const { id, namespace, agents, mode, cedar, cedarFault, defaultAction, rules, revision } = policy
  const written = rules.map(({ hits: _, since: __, ...rule }) => rule)
  return (
    <Section title={`Policy ${plainText(id)}`}>
      <p>
        <Badge tone={mode === 'enforce' ? 'good' : 'warn'}>{mode}</Badge> for{' '}
        <Name of={agentsText(namespace, agents)} />, revision <code class="digest">{revision}</code>{' '}
        <a href={linkTo('policy')}>Close</a>
      </p>
      {cedarFault !== null && (
        <p class="problem">
          Its Cedar text denies every call: <Name of={cedarFault} />
        </p>
      )}
      <Json text={JSON.stringify({ defaultAction, rules: written, ...(cedar !== null && { cedar }) })} label="Policy" />
    </Section>
  )
}

function agentsText(namespace: string, agents: readonly string[]): string {
  return agents.length === 0 ? 'no agent' : agents.map((agent) => `${namespace}/${agent}`).join(', ')
}

function rowsOf(policy: Policy): readonly Row[] {
  return [...policy.rules.map((rule) => ({ policy, rule })), { policy, rule: null }]
}

function conditionsOf({ match = {}, when }: Rule): string {
  const parts = Object.entries(match).map(([name, values]) => `${name}: ${values.join(', ')}`)
  return [...parts, ...(when === undefined ? [] : [`when ${when}`])].join('; ')
}

const COLUMNS: readonly Column<Row>[] = [
  {
    name: 'Policy',
    width: '2fr',
    isMain: true,
    isTitle: true,
    cell: ({ policy: { id, mode } }) => (
      <>
        <a href={linkTo('policy', undefined, { policy: id })}>
          <Name of={id} />
        </a>
        {mode === 'dryRun' && ' (dryRun)'}
      </>
    ),
  },
  {
    name: 'Rule',
    width: '2fr',
    isMain: true,
    cell: ({ rule }) => (rule === null ? <span class="faint">none matches</span> : <Name of={rule.name} />),
  },
  {
    name: 'Action',
    width: '10rem',
    cell: ({ policy, rule }) => <Action of={rule?.action ?? policy.defaultAction} />,
  },
  {
    name: 'Matches',
    width: '3fr',
    cell: ({ rule }) => (rule === null ? '' : <Name of={conditionsOf(rule) || 'every call'} />),
  },
  {
    name: 'Decided',
    width: '6rem',
    isMain: true,
    isNumber: true,
    cell: ({ policy, rule }) => (
      <span title={rule === null ? undefined : `calls since ${absoluteTime(Date.parse(rule.since))}`}>
        {count(rule?.hits ?? policy.defaultHits)}
      </span>
    ),
  },
]
