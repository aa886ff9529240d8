import type { Result } from '../../api/client.ts'
import { usePages } from '../../app/query.ts'
import { useShared } from '../../app/session.ts'
import { absoluteTime, bytes, count } from '../../ui/format.ts'
import { Badge, Section, type Tone } from '../../ui/parts.tsx'
import { type Column, NoRows, Table } from '../../ui/table.tsx'
import { plainText } from '../../ui/visible.ts'

type Segment = Result<'GET /v1/audit/segments'>['items'][number]

const PAGE_SIZE = 200

/** Sealed segments, and whether the gateway found them whole. */
export function Segments() {
  const { client } = useShared()
  const pages = usePages('segments', (cursor, signal) =>
    client.call('GET /v1/audit/segments', { query: { limit: PAGE_SIZE, ...(cursor && { cursor }) }, signal }),
  )
  return (
    <Section title="Sealed segments">
      <Table
        label="Sealed segments"
        columns={COLUMNS}
        pages={pages}
        keyOf={({ id }) => id}
        empty={
          <NoRows title="No segment is sealed yet">
            The file of the ledger is sealed at auditSegmentBytes or auditSegmentSeconds, and a new one begins.
          </NoRows>
        }
      />
    </Section>
  )
}

const TONES: Readonly<Record<Segment['state'], Tone>> = { verified: 'good', damaged: 'bad', unverified: 'neutral' }

const COLUMNS: readonly Column<Segment>[] = [
  {
    name: 'Records',
    width: '2fr',
    isMain: true,
    cell: ({ first, last }) => `${count(first)} to ${count(last)}`,
  },
  {
    name: 'State',
    width: '8rem',
    isMain: true,
    cell: ({ state, problem }) => (
      <span title={problem === null ? undefined : plainText(problem)}>
        <Badge tone={TONES[state]}>{state === 'unverified' ? 'not yet verified' : state}</Badge>
      </span>
    ),
  },
  { name: 'From', width: '15rem', cell: ({ from }) => absoluteTime(Date.parse(from)) },
  { name: 'To', width: '15rem', cell: ({ to }) => absoluteTime(Date.parse(to)) },
  { name: 'Size', width: '7rem', isNumber: true, cell: ({ bytes: size }) => bytes(size) },
  { name: 'Checkpoint', width: '7rem', cell: ({ isSigned }) => (isSigned ? 'signed' : 'not yet') },
  { name: 'File', width: '9rem', cell: fileText },
]

function fileText({ isHere, isCompressed, isArchived }: Segment): string {
  const here = isHere ? (isCompressed ? 'compressed' : 'here') : 'left'
  return isArchived ? `${here}, archived` : here
}
