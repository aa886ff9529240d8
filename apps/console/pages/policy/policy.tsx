import { useState } from 'preact/hooks'
import type { ApiError, Result } from '../../api/client.ts'
import { now } from '../../app/clock.ts'
import { asApiError } from '../../app/query.ts'
import { goTo, linkTo } from '../../app/route.ts'
import { useShared } from '../../app/session.ts'
import { absoluteTime, count } from '../../ui/format.ts'
import { Empty, Fact, Facts, PageHead, Problem, Section } from '../../ui/parts.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import { Name } from '../../ui/text.tsx'
import { Action } from './action.tsx'
import { InForce } from './in-force.tsx'
import { ResourceProblems } from './problems.tsx'
import { objectIn, TryCall } from './try.tsx'

type Simulation = Result<'POST /v1/policies/simulate'>
type Judged = Simulation['items'][number]

const HOUR_MS = 3_600_000
const PAGE_SIZE = 500
const MAX_FILE_BYTES = 8 << 20

interface Replay {
  readonly counts: Simulation['counts']
  readonly items: readonly Judged[]
  readonly isRunning: boolean
  readonly error: ApiError | null
}

/** Policies in force, and a replay of calls of the ledger against edited ones. */
export function PolicyPage({ query }: { readonly query: URLSearchParams }) {
  const { client } = useShared()
  const [text, setText] = useState('')
  const [hours, setHours] = useState(24)
  const [agent, setAgent] = useState('')
  const [problem, setProblem] = useState<string | null>(null)
  const [replay, setReplay] = useState<Replay | null>(null)
  const [stop, setStop] = useState<AbortController | null>(null)
  const start = (event: Event) => {
    event.preventDefault()
    const policies = objectIn(text)
    setProblem(
      policies === null
        ? 'The text is not a JSON object. Choose the file .plat/rendered/policies.json of a folder with the edited policies.'
        : null,
    )
    if (policies === null) return
    const control = new AbortController()
    setStop(control)
    const body = { policies, since: new Date(now() - hours * HOUR_MS).toISOString(), ...(agent !== '' && { agent }) }
    void run(client, body, { signal: control.signal, show: setReplay })
  }
  return (
    <>
      <PageHead title="Policy" />
      <InForce chosen={query.get('policy') ?? ''} />
      <ResourceProblems />
      <TryCall />
      <Section title="Replay calls against edited policies">
        <form onSubmit={start}>
          <PolicyFile text={text} setText={setText} />
          <Options
            {...{ hours, setHours, agent, setAgent }}
            isRunning={replay?.isRunning === true}
            stop={() => stop?.abort()}
          />
          {problem !== null && (
            <p class="problem" role="alert">
              {problem}
            </p>
          )}
        </form>
      </Section>
      {replay !== null && <Outcome replay={replay} />}
    </>
  )
}

interface OptionsProps {
  readonly hours: number
  readonly setHours: (hours: number) => void
  readonly agent: string
  readonly setAgent: (agent: string) => void
  readonly isRunning: boolean
  readonly stop: () => void
}

function Options({ hours, setHours, agent, setAgent, isRunning, stop }: OptionsProps) {
  return (
    <div class="filters">
      <label class="field">
        <span>Calls of the last</span>
        <select value={String(hours)} onChange={(event) => setHours(Number(event.currentTarget.value))}>
          <option value="1">hour</option>
          <option value="24">day</option>
          <option value="168">week</option>
        </select>
      </label>
      <label class="field">
        <span>Only agent (namespace/name)</span>
        <input value={agent} onInput={(event) => setAgent(event.currentTarget.value)} />
      </label>
      <div class="actions">
        <button type="submit" class="primary" disabled={isRunning}>
          Replay
        </button>
        {isRunning && (
          <button type="button" onClick={stop}>
            Stop
          </button>
        )}
      </div>
    </div>
  )
}

function PolicyFile({ text, setText }: { readonly text: string; readonly setText: (text: string) => void }) {
  const read = async (file: File | undefined) => {
    if (file !== undefined && file.size <= MAX_FILE_BYTES) setText(await file.text())
  }
  return (
    <>
      <p>
        Render the edited resources with <code>plat up</code> in a copy of the folder, and choose its{' '}
        <code>.plat/rendered/policies.json</code>. Nothing is changed by a replay.
      </p>
      <label class="field">
        <span>File (at most 8 MiB)</span>
        <input
          type="file"
          accept=".json,application/json"
          onChange={(event) => void read(event.currentTarget.files?.[0])}
        />
      </label>
      <label class="field">
        <span>or its text</span>
        <textarea
          rows={8}
          spellcheck={false}
          class="code"
          value={text}
          onInput={(event) => setText(event.currentTarget.value)}
        />
      </label>
    </>
  )
}

/** Judges page after page, until the end of the ledger or until it is stopped. */
async function run(
  client: ReturnType<typeof useShared>['client'],
  body: { readonly policies: { readonly [name: string]: unknown }; readonly since: string; readonly agent?: string },
  { signal, show }: { readonly signal: AbortSignal; readonly show: (replay: Replay) => void },
): Promise<void> {
  let replay: Replay = {
    counts: { same: 0, changed: 0, needs_arguments: 0, skipped: 0 },
    items: [],
    isRunning: true,
    error: null,
  }
  show(replay)
  try {
    for (let cursor: string | null = ''; cursor !== null; ) {
      const page: Simulation = await client.call('POST /v1/policies/simulate', {
        body: { ...body, show: ['changed', 'needs_arguments'], limit: PAGE_SIZE, ...(cursor !== '' && { cursor }) },
        signal,
      })
      replay = { ...replay, counts: added(replay.counts, page.counts), items: [...replay.items, ...page.items] }
      show(replay)
      cursor = page.nextCursor
    }
    show({ ...replay, isRunning: false })
  } catch (error) {
    show({ ...replay, isRunning: false, error: signal.aborted ? null : asApiError(error) })
  }
}

function added(one: Simulation['counts'], other: Simulation['counts']): Simulation['counts'] {
  return {
    same: one.same + other.same,
    changed: one.changed + other.changed,
    needs_arguments: one.needs_arguments + other.needs_arguments,
    skipped: one.skipped + other.skipped,
  }
}

function Outcome({ replay: { counts, items, isRunning, error } }: { readonly replay: Replay }) {
  return (
    <Section title="What would change">
      {error !== null && <Problem error={error} />}
      <p role="status" class="faint">
        {isRunning ? 'Replaying …' : 'Replayed.'}
      </p>
      <Facts>
        <Fact name="Decided as before">{count(counts.same)}</Fact>
        <Fact name="Decided differently">{count(counts.changed)}</Fact>
        <Fact name="Depends on arguments that are not stored">{count(counts.needs_arguments)}</Fact>
        <Fact name="Not decided by a policy">{count(counts.skipped)}</Fact>
      </Facts>
      <Table
        label="Calls that would be decided differently"
        columns={COLUMNS}
        pages={{ data: items, error: null, loading: isRunning, reload: () => {}, more: null }}
        keyOf={({ seq }) => String(seq)}
        open={({ seq }) => goTo(linkTo('ledger', seq))}
        empty={<Empty title="No call would be decided differently" />}
      />
    </Section>
  )
}

const COLUMNS: readonly Column<Judged>[] = [
  {
    name: 'Record',
    width: '6rem',
    isNumber: true,
    cell: ({ seq }) => <a href={linkTo('ledger', seq)}>{count(seq)}</a>,
  },
  { name: 'Time', width: '15rem', cell: ({ at }) => absoluteTime(Date.parse(at)) },
  { name: 'Agent', width: '1fr', cell: ({ namespace, agent }) => <Name of={`${namespace}/${agent}`} /> },
  {
    name: 'Call',
    width: '2fr',
    isMain: true,
    isTitle: true,
    cell: ({ server, tool, op }) => <Name of={tool === null ? `${server} ${op}` : `${server}/${tool}`} />,
  },
  { name: 'Was', width: '9rem', isMain: true, cell: ({ was }) => <Action of={was.action} /> },
  {
    name: 'Would be',
    width: '11rem',
    isMain: true,
    cell: ({ would, possible }) =>
      would === null ? <Name of={possible.join(' or ')} /> : <Action of={would.action} />,
  },
  {
    name: 'Rule',
    width: '2fr',
    cell: ({ would }) => (
      <Name of={would === null ? null : `${would.policy ?? 'no policy'}#${would.rule ?? 'no rule'}`} />
    ),
  },
]
