import Type from 'typebox'
import { AdminError, type AdminRoutes, bodyAs, type Caller, page, parameter, queried } from '../../admin/index.ts'
import { type PinBook, TOOLS_PER_SERVER_MAX } from './book.ts'
import type { PinReports } from './report.ts'
import type { ServerPinsDetail, ToolDefinitions, ToolPinView } from './view.ts'

/** An accepted definition. */
export interface PinAcceptance {
  /** `<namespace>/<name>`. */
  readonly server: string
  readonly tool: string
  readonly digest: string
  readonly by: string
}

export interface PinRoutesOptions {
  readonly book: PinBook
  readonly reports: PinReports
  readonly onAccepted: (acceptance: PinAcceptance) => void
  /** Called when the journal fails. */
  readonly onFault: (error: unknown) => void
}

/** Body of `POST /v1/pins/{namespace}/{name}/accept`. The digest identifies the definition that was reviewed. */
export const acceptSchema = Type.Object(
  {
    tool: Type.String({ minLength: 1, maxLength: 1024 }),
    digest: Type.String({ pattern: '^sha256:[0-9a-f]{64}$' }),
  },
  { additionalProperties: false },
)

/** `/v1/pins`: shows the pin state of servers, and accepts changed definitions. */
export function createPinRoutes({ book, reports, onAccepted, onFault }: PinRoutesOptions): AdminRoutes {
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
      context.on('POST /v1/pins/:namespace/:name/accept', async (request, _reply, caller) => {
        const server = found(request.params, caller)
        caller.demand(parameter(request.params, 'namespace'))
        const { tool, digest } = bodyAs(acceptSchema, request.body)
        acceptable(server, tool, digest)
        const acceptance = { server: server.id, tool, digest, by: caller.by }
        await book.accept(server.id, { tool, digest, by: acceptance.by }).catch((fault: unknown) => {
          onFault(fault)
          throw new AdminError('state_unavailable', 'the journal of pins cannot be written: nothing was accepted')
        })
        onAccepted(acceptance)
        return found(request.params, caller)
      })
    },
  }
}

function toolOf({ id, tools }: ServerPinsDetail, tool: string): ToolPinView {
  const known = tools.find((one) => one.tool === tool)
  if (known !== undefined) return known
  throw new AdminError('not_found', `${id} has no tool of this name`)
}

/** Throws if accepting would change nothing, or accept another definition than the one reviewed. */
function acceptable(server: ServerPinsDetail, tool: string, digest: string): void {
  const known = toolOf(server, tool)
  const why = whyNot(known, digest)
  if (why !== null) throw new AdminError('conflict', why)
  const learned = server.tools.filter(({ source }) => source === 'journal').length
  if (known.source === null && learned >= TOOLS_PER_SERVER_MAX) {
    throw new AdminError('backlog_full', `${server.id} has ${TOOLS_PER_SERVER_MAX} pins, which is the maximum`)
  }
}

function whyNot({ source, digest, standing }: ToolPinView, accepted: string): string | null {
  if (source === 'resources') return 'resources pin this tool: change the digest in their toolPins.pins'
  if (digest === null)
    return 'this tool has not been listed since the gateway started: list the tools of the server first'
  if (digest !== accepted) return 'the server now offers another definition: review it first'
  return standing === 'pinned' ? 'this definition is the pinned one already' : null
}
