import type { Result } from '../../api/client.ts'
import { usePages } from '../../app/query.ts'
import { goTo, linkTo } from '../../app/route.ts'
import { useShared } from '../../app/session.ts'
import { count } from '../../ui/format.ts'
import { Badge, PageHead, Section, Time } from '../../ui/parts.tsx'
import { type Column, NoRows, Table } from '../../ui/table.tsx'
import { Name } from '../../ui/text.tsx'
import { Models, Servers } from './in-force.tsx'

type Server = Result<'GET /v1/pins'>['items'][number]

const PAGE_SIZE = 200

/** MCP servers, with tools whose definition is not the pinned one, and model routes. */
export function ServersPage() {
  const { client } = useShared()
  const pages = usePages(
    'pins',
    (cursor, signal) => client.call('GET /v1/pins', { query: { limit: PAGE_SIZE, ...(cursor && { cursor }) }, signal }),
    ['pin', 'health'],
  )
  return (
    <>
      <PageHead title="Servers" />
      <Section title="Pinned tools">
        <Table
          label="MCP servers"
          columns={COLUMNS}
          pages={pages}
          keyOf={({ id }) => id}
          open={({ id }) => goTo(linkTo('servers', id))}
          empty={
            <NoRows title="No MCP server with pins">
              Servers appear here when toolPins.mode is learn or enforce and the gateway has listed their tools.
            </NoRows>
          }
        />
      </Section>
      <Servers />
      <Models />
    </>
  )
}

const COLUMNS: readonly Column<Server>[] = [
  {
    name: 'Server',
    width: '2fr',
    isMain: true,
    isTitle: true,
    cell: ({ id }) => (
      <a href={linkTo('servers', id)}>
        <Name of={id} />
      </a>
    ),
  },
  { name: 'Pins', width: '7rem', cell: ({ mode }) => mode },
  {
    name: 'Changed tools',
    width: '2fr',
    isMain: true,
    cell: ({ driftedTools }) =>
      driftedTools.length === 0 ? (
        <Badge tone="good">none</Badge>
      ) : (
        <Badge tone="bad">
          <Name of={driftedTools.join(', ')} />
        </Badge>
      ),
  },
  { name: 'Tools', width: '6rem', isNumber: true, cell: ({ observedTools }) => count(observedTools) },
  {
    name: 'Without a pin',
    width: '8rem',
    isNumber: true,
    cell: ({ unpinnedTools, mode }) =>
      unpinnedTools > 0 && mode === 'enforce' ? (
        <span title="Without a pin, mode enforce hides and refuses a tool unless allowUnpinned is set">
          <Badge tone="warn">{count(unpinnedTools)}</Badge>
        </span>
      ) : (
        count(unpinnedTools)
      ),
  },
  { name: 'Listed', width: '9rem', cell: ({ lastSeen }) => <Time at={lastSeen} /> },
]
