import { useState } from 'preact/hooks'
import type { Result } from '../../api/client.ts'
import { useLoaded } from '../../app/query.ts'
import { hasRole, useShared } from '../../app/session.ts'
import { Confirm } from '../../ui/dialog.tsx'
import { count } from '../../ui/format.ts'
import { Json } from '../../ui/json.tsx'
import { Badge, Empty, Fact, Facts, PageHead, Problem, Section, Time, type Tone } from '../../ui/parts.tsx'
import { Name } from '../../ui/text.tsx'
import { plainText } from '../../ui/visible.ts'

type Detail = Result<'GET /v1/pins/{namespace}/{name}'>
type Tool = Detail['tools'][number]

const TONES: Readonly<Record<string, Tone>> = { pinned: 'good', drifted: 'bad', unpinned: 'warn' }
const WORDS: Readonly<Record<string, string>> = { pinned: 'as pinned', drifted: 'changed', unpinned: 'without a pin' }

/** One MCP server: its tools, and for each the difference between the offered and the pinned definition. */
export function ServerPage({ id }: { readonly id: string }) {
  const { client } = useShared()
  const [namespace = '', name = ''] = id.split('/')
  const [chosen, setChosen] = useState<string | null>(null)
  const params = { namespace, name }
  const { data, error, reload } = useLoaded(
    id,
    (signal) => client.call('GET /v1/pins/{namespace}/{name}', { params, signal }),
    { topics: ['pin'] },
  )
  const tools = data?.tools ?? []
  const tool =
    tools.find((one) => one.tool === chosen) ??
    tools.find(({ standing }) => standing === 'drifted') ??
    tools.find(({ standing }) => standing === 'unpinned') ??
    tools[0]
  return (
    <>
      <PageHead title={<Name of={id} />} />
      {data === null && error === null && <p class="faint">Loading …</p>}
      {error !== null && <Problem error={error} retry={reload} />}
      {data !== null && <Summary detail={data} />}
      {data !== null && <Tools tools={data.tools} chosen={tool?.tool ?? null} choose={setChosen} />}
      {tool !== undefined && (
        <Definition key={`${tool.tool} ${tool.digest}`} server={params} tool={tool} done={reload} />
      )}
    </>
  )
}

function Summary({ detail: { mode, onChange, allowUnpinned, observedTools, lastSeen } }: { readonly detail: Detail }) {
  return (
    <Section title="Pins">
      <Facts>
        <Fact name="Mode">
          {mode === 'enforce' ? 'enforce: changed tools are held back' : 'learn: changes are reported'}
        </Fact>
        <Fact name="A changed tool">
          {
            {
              hide: 'is hidden and refused',
              approve: 'needs an approval for each call',
              alert: 'is reported, and can be called',
            }[onChange]
          }
        </Fact>
        <Fact name="A tool without a pin">
          {allowUnpinned || mode === 'learn' ? 'can be called' : 'is hidden and refused'}
        </Fact>
        <Fact name="Tools">{count(observedTools)}</Fact>
        <Fact name="Listed">
          <Time at={lastSeen} full />
        </Fact>
      </Facts>
    </Section>
  )
}

function Tools(props: {
  readonly tools: readonly Tool[]
  readonly chosen: string | null
  readonly choose: (tool: string) => void
}) {
  const { tools, chosen, choose } = props
  return (
    <Section title="Tools">
      {tools.length === 0 && (
        <Empty title="No tool is known">The gateway lists the tools at the first call of the server.</Empty>
      )}
      <ul class="tools">
        {tools.map(({ tool, standing, rejected }) => (
          <li>
            <button type="button" aria-pressed={tool === chosen} onClick={() => choose(tool)} title={plainText(tool)}>
              <span class="tool-name">
                <Name of={tool} />
              </span>
              <Badge tone={TONES[standing ?? ''] ?? 'neutral'}>
                {rejected ? 'rejected' : (WORDS[standing ?? ''] ?? 'not offered')}
              </Badge>
            </button>
          </li>
        ))}
      </ul>
    </Section>
  )
}

interface DefinitionProps {
  readonly server: { readonly namespace: string; readonly name: string }
  readonly tool: Tool
  readonly done: () => void
}

/** The definition that is offered now, with what changed since the last pinned one. */
function Definition({ server, tool: { tool, standing, source, rejected }, done }: DefinitionProps) {
  const { client, session } = useShared()
  const [open, setOpen] = useState<Decision | null>(null)
  const { data, error, reload } = useLoaded(`${tool}`, (signal) =>
    client.call('GET /v1/pins/{namespace}/{name}/definition', { params: server, query: { tool }, signal }),
  )
  const before = data?.pinned.findLast((text) => text !== null) ?? undefined
  const mayDecide = hasRole(session, 'admin') && standing !== 'pinned' && data !== null && data.offered !== null
  return (
    <Section title={`Definition of ${plainText(tool, 60)}`}>
      {error !== null && <Problem error={error} retry={reload} />}
      {data !== null && data.offered === null && (
        <p class="note">This gateway has not received the definition, so it has no text to show.</p>
      )}
      {data !== null && data.offered !== null && (
        <>
          {standing === 'drifted' && (
            <p class="faint">
              {before === undefined
                ? 'The text of the pinned definition is not stored here.'
                : 'Marked lines differ from the pinned definition.'}
            </p>
          )}
          <Json text={data.offered} before={standing === 'drifted' ? before : undefined} label="Definition" />
        </>
      )}
      {source === 'resources' && standing !== 'pinned' && (
        <p class="note">The pin is in an MCPServer or a ToolPolicy: change toolPins.pins there.</p>
      )}
      {rejected && (
        <p class="note">A person rejected this definition: the tool is hidden and refused until it is accepted.</p>
      )}
      {standing !== 'pinned' && standing !== null && !hasRole(session, 'admin') && (
        <p class="note">Accepting or rejecting a definition needs the role admin.</p>
      )}
      {mayDecide && data.digest !== null && (
        <div class="actions">
          {!rejected && (
            <button type="button" class="danger" onClick={() => setOpen('reject')}>
              Reject …
            </button>
          )}
          {source !== 'resources' && (
            <button type="button" class="primary" onClick={() => setOpen('accept')}>
              Accept this definition …
            </button>
          )}
        </div>
      )}
      {open !== null && data !== null && data.digest !== null && (
        <Decide decision={open} {...{ server, tool, done }} digest={data.digest} close={() => setOpen(null)} />
      )}
    </Section>
  )
}

type Decision = 'accept' | 'reject'

interface DecideProps {
  readonly decision: Decision
  readonly server: { readonly namespace: string; readonly name: string }
  readonly tool: string
  readonly digest: string
  readonly done: () => void
  readonly close: () => void
}

/** Accepts or rejects exactly the definition that was displayed: the gateway refuses if it has changed since. */
function Decide({ decision, server, tool, digest, done, close }: DecideProps) {
  const { client, notify } = useShared()
  const isAccept = decision === 'accept'
  const decide = async () => {
    await client.call(`POST /v1/pins/{namespace}/{name}/${decision}`, { params: server, body: { tool, digest } })
    notify(`The definition is ${decision}ed`)
    done()
  }
  return (
    <Confirm
      title={isAccept ? 'Accept this definition' : 'Reject this definition'}
      action={isAccept ? 'Accept' : 'Reject'}
      tone={isAccept ? 'good' : 'bad'}
      confirm={decide}
      close={close}
    >
      <p>
        {isAccept ? (
          <>
            Agents that may call <Name of={tool} /> receive this definition and follow it.
          </>
        ) : (
          <>
            <Name of={tool} /> is hidden from agents and refused, in every mode, until this definition is accepted or
            the server offers another one.
          </>
        )}
      </p>
      <p>
        <code class="digest">{digest}</code>
      </p>
    </Confirm>
  )
}
