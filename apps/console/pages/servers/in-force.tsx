import type { Result } from '../../api/client.ts'
import { usePages } from '../../app/query.ts'
import { useShared } from '../../app/session.ts'
import { count, duration } from '../../ui/format.ts'
import { Badge, Section, type Tone } from '../../ui/parts.tsx'
import { type Column, NoRows, Table } from '../../ui/table.tsx'
import { Name } from '../../ui/text.tsx'

type Server = Result<'GET /v1/servers'>['items'][number]
type Route = Result<'GET /v1/models'>['items'][number]

interface Row {
  readonly route: Route
  readonly endpoint: Route['endpoints'][number]
  readonly key: string
}

const PAGE_SIZE = 200

/** MCP servers that agents can name, and who may. */
export function Servers() {
  const { client } = useShared()
  const pages = usePages(
    'servers in force',
    (cursor, signal) =>
      client.call('GET /v1/servers', { query: { limit: PAGE_SIZE, ...(cursor && { cursor }) }, signal }),
    ['health', 'pin'],
  )
  return (
    <Section title="Servers in force">
      <Table
        label="Servers in force"
        columns={SERVER_COLUMNS}
        pages={pages}
        keyOf={({ id }) => id}
        empty={<NoRows title="No MCP server">Declare an MCPServer, or upstreams in gateway.json.</NoRows>}
      />
    </Section>
  )
}

/** Endpoints of model routes, with their circuits and latencies. */
export function Models() {
  const { client } = useShared()
  const pages = usePages(
    'model routes',
    (cursor, signal) =>
      client.call('GET /v1/models', { query: { limit: PAGE_SIZE, ...(cursor && { cursor }) }, signal }),
    ['calls', 'health'],
  )
  return (
    <Section title="Models">
      <Table
        label="Model routes"
        columns={MODEL_COLUMNS}
        pages={{ ...pages, data: pages.data?.flatMap(rowsOf) ?? null }}
        keyOf={({ key }) => key}
        empty={
          <NoRows title="No model route">An Agent with spec.model, or models in gateway.json, declares one.</NoRows>
        }
      />
    </Section>
  )
}

function rowsOf(route: Route): readonly Row[] {
  return route.endpoints.map((endpoint, at) => ({ route, endpoint, key: `${route.id} ${at}` }))
}

const KINDS: Readonly<Record<Server['kind'], string>> = {
  server: 'MCPServer',
  implicit: 'of one agent',
  static: 'gateway.json',
  builtin: 'built in',
}

const SERVER_COLUMNS: readonly Column<Server>[] = [
  { name: 'Server', width: '2fr', isMain: true, isTitle: true, cell: ({ id }) => <Name of={id} /> },
  { name: 'Declared by', width: '8rem', cell: ({ kind }) => KINDS[kind] },
  {
    name: 'Address',
    width: '3fr',
    cell: ({ url, stdio }) => (stdio ? 'runs with plat up' : <Name of={url ?? 'this gateway'} />),
  },
  {
    name: 'Last request',
    width: '9rem',
    isMain: true,
    cell: ({ unreachable }) =>
      unreachable === null ? (
        <span class="faint">no failure</span>
      ) : (
        <span title={unreachable}>
          <Badge tone="bad">unreachable</Badge>
        </span>
      ),
  },
  {
    name: 'Shared with',
    width: '1fr',
    cell: ({ namespace, sharedWith }) => <Name of={namespace === null ? 'all' : sharedWith.join(', ') || 'none'} />,
  },
  {
    name: 'Trust',
    width: '7rem',
    cell: ({ trust }) => <Badge tone={trust === 'trusted' ? 'good' : 'warn'}>{trust}</Badge>,
  },
  { name: 'Data', width: '7rem', cell: ({ dataClass }) => <Name of={dataClass} /> },
  { name: 'Authentication', width: '10rem', cell: ({ auth }) => <Name of={auth} /> },
]

const CIRCUITS: Readonly<Record<Row['endpoint']['circuit'], Tone>> = { closed: 'good', trial: 'warn', open: 'bad' }

const MODEL_COLUMNS: readonly Column<Row>[] = [
  {
    name: 'Route',
    width: '2fr',
    isMain: true,
    isTitle: true,
    cell: ({ route, endpoint }) => (
      <>
        <Name of={route.id} />
        {endpoint.isFallback && ' (fallback)'}
      </>
    ),
  },
  { name: 'Provider', width: '8rem', cell: ({ endpoint: { provider } }) => <Name of={provider} /> },
  {
    name: 'Model',
    width: '2fr',
    cell: ({ endpoint: { model } }) =>
      model === null ? <span class="faint">the one that a call names</span> : <Name of={model} />,
  },
  { name: 'Address', width: '2fr', cell: ({ endpoint: { origin } }) => <Name of={origin} /> },
  {
    name: 'Circuit',
    width: '11rem',
    isMain: true,
    cell: ({ endpoint: { circuit, retryInMs, isReady } }) =>
      isReady ? (
        <>
          <Badge tone={CIRCUITS[circuit]}>{circuit}</Badge>
          {circuit === 'open' && retryInMs !== null && ` for ${duration(retryInMs)}`}
        </>
      ) : (
        <Badge tone="bad">no credential</Badge>
      ),
  },
  {
    name: 'Failures',
    width: '6rem',
    isNumber: true,
    cell: ({ endpoint: { failures } }) => <span class={failures > 0 ? 'bad-text' : ''}>{count(failures)}</span>,
  },
  {
    name: 'Latency',
    width: '9rem',
    isNumber: true,
    cell: ({ endpoint: { latencies } }) => {
      const [first] = latencies.toSorted((one, other) => one.agoMs - other.agoMs)
      return first === undefined ? <span class="faint">not measured</span> : duration(first.averageMs)
    },
  },
]
