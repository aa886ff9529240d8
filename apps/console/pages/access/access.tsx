import { useState } from 'preact/hooks'
import type { Result } from '../../api/client.ts'
import { useLoaded, usePages } from '../../app/query.ts'
import { hasRole, useShared } from '../../app/session.ts'
import { Confirm } from '../../ui/dialog.tsx'
import { Badge, Empty, Fact, Facts, PageHead, Problem, Section, Time } from '../../ui/parts.tsx'
import { type Column, NoRows, Table } from '../../ui/table.tsx'
import { LongText, Name } from '../../ui/text.tsx'
import { plainText } from '../../ui/visible.ts'
import { NewRevocation } from './revocation.tsx'

type Revocation = Result<'GET /v1/revocations'>['items'][number]
type Account = Result<'GET /v1/accounts'>['items'][number]

const PAGE_SIZE = 200

/** Access: revocations, the roles of the person, connected accounts, the licence, and risks of the configuration. */
export function AccessPage() {
  return (
    <>
      <PageHead title="Access" />
      <Revocations />
      <Roles />
      <Posture />
      <Accounts />
      <License />
    </>
  )
}

function Revocations() {
  const { client, session } = useShared()
  const [open, setOpen] = useState<Revocation | 'new' | null>(null)
  const pages = usePages(
    'revocations',
    (cursor, signal) =>
      client.call('GET /v1/revocations', { query: { limit: PAGE_SIZE, ...(cursor && { cursor }) }, signal }),
    ['revocation'],
  )
  const mayRevoke = hasRole(session, 'killswitch')
  const close = () => setOpen(null)
  const liftColumn: Column<Revocation> = {
    name: 'Lift',
    width: '6rem',
    isMain: true,
    cell: (one) =>
      mayRevoke && one.source !== 'file' ? (
        <button
          type="button"
          class="small"
          onClick={() => setOpen(one)}
          aria-label={`Lift the revocation of ${plainText(targetText(one), 80)}`}
        >
          Lift …
        </button>
      ) : (
        <span class="faint">{one.source === 'file' ? 'in a file' : '–'}</span>
      ),
  }
  return (
    <Section title="Revocations in force">
      {mayRevoke && (
        <p>
          <button type="button" class="danger" onClick={() => setOpen('new')}>
            Revoke …
          </button>
        </p>
      )}
      <Table
        label="Revocations"
        columns={[...REVOCATION_COLUMNS, liftColumn]}
        pages={pages}
        keyOf={({ id }) => id}
        empty={<NoRows title="No revocation is in force">Every token that is valid can be used.</NoRows>}
      />
      {open === 'new' && <NewRevocation done={pages.reload} close={close} />}
      {open !== null && open !== 'new' && <LiftDialog revocation={open} done={pages.reload} close={close} />}
    </Section>
  )
}

function LiftDialog({
  revocation,
  done,
  close,
}: {
  readonly revocation: Revocation
  readonly done: () => void
  readonly close: () => void
}) {
  const { client, notify } = useShared()
  const lift = async () => {
    await client.call('DELETE /v1/revocations/{id}', { params: { id: revocation.id } })
    notify('The revocation is lifted')
    done()
  }
  return (
    <Confirm title="Lift the revocation" action="Lift" tone="good" confirm={lift} close={close}>
      <p>
        <Name of={targetText(revocation)} /> can call again at once, with tokens that have not expired.
      </p>
    </Confirm>
  )
}

function targetText({ target }: Revocation): string {
  return Object.entries(target)
    .map(([name, value]) => (value === true ? 'everything' : `${name} ${String(value)}`))
    .join(', ')
}

const REVOCATION_COLUMNS: readonly Column<Revocation>[] = [
  { name: 'Target', width: '2fr', isMain: true, isTitle: true, cell: (one) => <Name of={targetText(one)} /> },
  { name: 'Mode', width: '6rem', cell: ({ mode }) => <Badge tone="bad">{mode}</Badge> },
  { name: 'Reason', width: '2fr', cell: ({ reason }) => <Name of={reason} /> },
  { name: 'Since', width: '9rem', cell: ({ createdAt }) => <Time at={createdAt} /> },
  {
    name: 'Ends',
    width: '9rem',
    cell: ({ expiresAt }) => (expiresAt === null ? 'when lifted' : <Time at={expiresAt} />),
  },
]

function Roles() {
  const { client } = useShared()
  const { data, error, reload } = useLoaded('whoami', (signal) => client.call('GET /v1/whoami', { signal }))
  return (
    <Section title="Your roles">
      {error !== null && <Problem error={error} retry={reload} />}
      {data !== null && (
        <Facts>
          <Fact name="You are">
            <Name of={data.by} />
          </Fact>
          <Fact name="In all namespaces">{data.roles.join(', ') || 'none'}</Fact>
          {Object.entries(data.namespaceRoles).map(([namespace, roles]) => (
            <Fact name={`In ${namespace}`}>{roles.join(', ')}</Fact>
          ))}
        </Facts>
      )}
    </Section>
  )
}

function Posture() {
  const { client } = useShared()
  const { data, error, reload } = useLoaded('posture', (signal) => client.call('GET /v1/posture', { signal }))
  if (error?.code === 'forbidden') return null
  return (
    <Section title="Risks of the configuration">
      {error !== null && <Problem error={error} retry={reload} />}
      {data?.items.length === 0 && <Empty title="No risk is found" />}
      <ul class="risks">
        {data?.items.map(({ id, risk, fix }) => (
          <li>
            <Badge tone="warn">
              <Name of={id} />
            </Badge>
            <LongText of={risk} />
            <div class="faint">
              Fix: <Name of={fix} />
            </div>
          </li>
        ))}
      </ul>
    </Section>
  )
}

function Accounts() {
  const { client } = useShared()
  const pages = usePages('accounts', (cursor, signal) =>
    client.call('GET /v1/accounts', { query: { limit: PAGE_SIZE, ...(cursor && { cursor }) }, signal }),
  )
  if (pages.error?.code === 'forbidden') return null
  // Without a vault the gateway has no such route.
  if (pages.error?.code === 'not_found') return <NoVault />
  return (
    <Section title="Connected accounts">
      <Table
        label="Connected accounts"
        columns={ACCOUNT_COLUMNS}
        pages={pages}
        keyOf={({ id }) => id}
        empty={
          <NoRows title="No user has connected an account">
            Users connect accounts for servers whose credential is that of the user.
          </NoRows>
        }
      />
    </Section>
  )
}

function NoVault() {
  return (
    <Section title="Connected accounts">
      <NoRows title="This gateway holds no accounts of users">
        With tokenVault in gateway.json, users connect accounts for servers that are called in their name.
      </NoRows>
    </Section>
  )
}

const ACCOUNT_COLUMNS: readonly Column<Account>[] = [
  { name: 'User', width: '2fr', isMain: true, isTitle: true, cell: ({ user }) => <Name of={user} /> },
  { name: 'Provider', width: '1fr', isMain: true, cell: ({ provider }) => <Name of={provider} /> },
  { name: 'Scopes', width: '2fr', cell: ({ scopes }) => <Name of={scopes.join(' ')} /> },
  { name: 'Connected', width: '9rem', cell: ({ connectedAt }) => <Time at={connectedAt} /> },
  {
    name: 'Expires',
    width: '9rem',
    cell: ({ expiresAt }) => (expiresAt === null ? 'renewed' : <Time at={expiresAt} />),
  },
]

function License() {
  const { client } = useShared()
  const { data, error, reload } = useLoaded('license', (signal) => client.call('GET /v1/license', { signal }))
  if (error?.code === 'forbidden') return null
  return (
    <Section title="Licence">
      {error !== null && <Problem error={error} retry={reload} />}
      {data !== null && (
        <Facts>
          <Fact name="Edition">
            <Name of={data.edition} />
          </Fact>
          <Fact name="State">
            <Badge tone={data.state === 'valid' ? 'good' : data.state === 'none' ? 'neutral' : 'warn'}>
              {data.state === 'none' ? 'no licence' : data.state}
            </Badge>
            {data.reason !== undefined && <Name of={data.reason} />}
          </Fact>
          <Fact name="Nodes">{data.nodes}</Fact>
          {data.holder !== undefined && (
            <Fact name="Holder">
              <Name of={data.holder} />
            </Fact>
          )}
          {data.until !== undefined && (
            <Fact name="Valid until">
              <Time at={data.until} full />
            </Fact>
          )}
        </Facts>
      )}
    </Section>
  )
}
