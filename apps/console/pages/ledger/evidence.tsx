import { useState } from 'preact/hooks'
import type { Result } from '../../api/client.ts'
import { usePages } from '../../app/query.ts'
import { useShared } from '../../app/session.ts'
import { Confirm } from '../../ui/dialog.tsx'
import { count, counted } from '../../ui/format.ts'
import { Badge, Section, Time } from '../../ui/parts.tsx'
import { type Column, NoRows, Table } from '../../ui/table.tsx'
import { Name } from '../../ui/text.tsx'

type EvidenceObject = Result<'GET /v1/evidence'>['items'][number]

const PAGE_SIZE = 100

/** Evidence objects, which contain records with everything that proves them, and a form for a new one. */
export function Evidence() {
  const { client } = useShared()
  const [open, setOpen] = useState(false)
  const pages = usePages('evidence', (cursor, signal) =>
    client.call('GET /v1/evidence', { query: { limit: PAGE_SIZE, ...(cursor && { cursor }) }, signal }),
  )
  return (
    <Section title="Evidence objects">
      <p>
        <button type="button" onClick={() => setOpen(true)}>
          New evidence object …
        </button>
      </p>
      <Table
        label="Evidence objects"
        columns={COLUMNS}
        pages={pages}
        keyOf={({ id }) => id}
        empty={
          <NoRows title="No evidence object yet">
            It holds the records of a session, an agent or a time, with their proofs, for someone without access to
            plat.
          </NoRows>
        }
      />
      {open && <NewEvidence done={pages.reload} close={() => setOpen(false)} />}
    </Section>
  )
}

function NewEvidence({ done, close }: { readonly done: () => void; readonly close: () => void }) {
  const { client, notify } = useShared()
  const [about, setAbout] = useState({ namespace: '', agent: '', session: '' })
  const create = async () => {
    const body = Object.fromEntries(Object.entries(about).filter(([, value]) => value !== ''))
    const { records } = await client.call('POST /v1/evidence', { body })
    notify(`The object holds ${counted(records, 'record')}`)
    done()
  }
  return (
    <Confirm title="New evidence object" action="Create" tone="good" confirm={create} close={close}>
      {(['namespace', 'agent', 'session'] as const).map((name) => (
        <label class="field">
          <span>{name}</span>
          <input value={about[name]} onInput={(event) => setAbout({ ...about, [name]: event.currentTarget.value })} />
        </label>
      ))}
    </Confirm>
  )
}

const COLUMNS: readonly Column<EvidenceObject>[] = [
  { name: 'Created', width: '9rem', cell: ({ at }) => <Time at={at} /> },
  { name: 'By', width: '1fr', cell: ({ by }) => <Name of={by} /> },
  {
    name: 'About',
    width: '2fr',
    isMain: true,
    isTitle: true,
    cell: ({ about }) => <Name of={JSON.stringify(about)} />,
  },
  { name: 'Records', width: '6rem', isNumber: true, cell: ({ records }) => count(records) },
  {
    name: 'Anchored',
    width: '7rem',
    cell: ({ anchored }) => (anchored ? <Badge tone="good">yes</Badge> : <Badge>no</Badge>),
  },
  {
    name: 'Object',
    width: '7rem',
    isMain: true,
    cell: ({ id }) => (
      <a href={`/v1/evidence/${encodeURIComponent(id)}/object`} download={`evidence-${id}.json`}>
        Download
      </a>
    ),
  },
]
