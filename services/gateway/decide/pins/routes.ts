import Type from 'typebox'
import { AdminError, type AdminRoutes, bodyAs, type Caller, page, parameter, queried } from '../../admin/index.ts'
import { type PinBook, TOOLS_PER_SERVER_MAX } from './book.ts'
import type { PinReports } from './report.ts'
import type { ServerPinsDetail, ToolDefinitions, ToolPinView } from './view.ts'

/** Decision of a person about a definition. */
export interface PinDecided {
  readonly decision: 'accepted' | 'rejected'
  /** `<namespace>/<name>`. */
  readonly server: string
  readonly tool: string
  readonly digest: string
  readonly by: string
}

export interface PinRoutesOptions {
  readonly book: PinBook
  readonly reports: PinReports
  readonly onDecided: (decided: PinDecided) => void
  /** Called when the journal fails. */
  readonly onFault: (error: unknown) => void
}

/** Body of `POST /v1/pins/{namespace}/{name}/accept` and `…/reject`. The digest identifies the definition that was reviewed. */
export const acceptSchema = Type.Object(
  {
    tool: Type.String({ minLength: 1, maxLength: 1024 }),
    digest: Type.String({ pattern: '^sha256:[0-9a-f]{64}$' }),
  },
  { additionalProperties: false },
)

/** `/v1/pins`: shows the pin state of servers, and accepts or rejects changed definitions. */
export function createPinRoutes({ book, reports, onDecided, onFault }: PinRoutesOptions): AdminRoutes {
  const found = (params: unknown, caller: Caller): ServerPinsDetail => {
    const namespace = parameter(params, 'namespace')
    const one = caller.sees(namespace) ? reports.one(`${namespace}/${parameter(params, 'name')}`) : null
    if (one !== null) return one
    throw new AdminError('not_found', 'there is no such server, or its tools are not pinned (mode off)')
  }
  return {
    mount(context) {
      context.on('GET /v1/pins', async ({ query }, _reply, caller) =>
        page(
          reports.all().filter(({ id }) => caller.sees(id.split('/', 1)[0] ?? null)),
          query,
        ),
      )
      context.on('GET /v1/pins/:namespace/:name', async ({ params }, _reply, caller) => found(params, caller))
      context.on('GET /v1/pins/:namespace/:name/definition', async ({ params, query }, _reply, caller) => {
        const tool = toolOf(found(params, caller), queried(query, 'tool') ?? '')
        const words = (digest: string | null) => (digest === null ? null : book.definition(digest))
        return { ...tool, offered: words(tool.digest), pinned: tool.pins.map(words) } satisfies ToolDefinitions
      })
      const decide = async (request: { params: unknown; body: unknown }, caller: Caller, decision: Decision) => {
        const server = found(request.params, caller)
        caller.demand(parameter(request.params, 'namespace'))
        const { tool, digest } = bodyAs(acceptSchema, request.body)
        decidable(server, book.rejectedCount(server.id), { tool, digest, decision })
        await book.decide(server.id, decision, { tool, digest, by: caller.by }).catch((fault: unknown) => {
          onFault(fault)
          throw new AdminError('state_unavailable', `the journal of pins cannot be written: nothing was ${decision}`)
        })
        onDecided({ decision, server: server.id, tool, digest, by: caller.by })
        return found(request.params, caller)
      }
      context.on('POST /v1/pins/:namespace/:name/accept', (request, _reply, caller) =>
        decide(request, caller, 'accepted'),
      )
      context.on('POST /v1/pins/:namespace/:name/reject', (request, _reply, caller) =>
        decide(request, caller, 'rejected'),
      )
    },
  }
}

function toolOf({ id, tools }: ServerPinsDetail, tool: string): ToolPinView {
  const known = tools.find((one) => one.tool === tool)
  if (known !== undefined) return known
  throw new AdminError('not_found', `${id} has no tool of this name`)
}

type Decision = PinDecided['decision']

/** Throws if the decision would change nothing, or be about another definition than the one reviewed. */
function decidable(
  server: ServerPinsDetail,
  rejected: number,
  { tool, digest, decision }: { readonly tool: string; readonly digest: string; readonly decision: Decision },
): void {
  const known = toolOf(server, tool)
  const why = whyNot(known, digest, decision)
  if (why !== null) throw new AdminError('conflict', why)
  const learned = server.tools.filter(({ source }) => source === 'journal').length
  if (decision === 'accepted' && known.source === null && learned >= TOOLS_PER_SERVER_MAX)
    throw new AdminError('backlog_full', `${server.id} has ${TOOLS_PER_SERVER_MAX} pins, which is the maximum`)
  if (decision === 'rejected' && rejected >= TOOLS_PER_SERVER_MAX)
    throw new AdminError('backlog_full', `${server.id} has ${TOOLS_PER_SERVER_MAX} rejected definitions, the maximum`)
}

function whyNot(known: ToolPinView, decided: string, decision: Decision): string | null {
  const { source, digest, standing, rejected } = known
  if (source === 'resources' && decision === 'accepted')
    return 'resources pin this tool: change the digest in their toolPins.pins'
  if (digest === null)
    return 'this tool has not been listed since the gateway started: list the tools of the server first'
  if (digest !== decided) return 'the server now offers another definition: review it first'
  if (standing === 'pinned') return 'this definition is the pinned one already'
  return rejected && decision === 'rejected' ? 'this definition is rejected already' : null
}
