import {
  isServerPins,
  isServerPinsDetail,
  isToolDefinitions,
  type ServerPins,
  type ServerPinsDetail,
  type ToolPinView,
} from '@plat/gateway/pins'
import { admin, adminList } from '../shared/admin-api.ts'
import { findGateway, type GatewayOptions } from '../shared/gateway.ts'
import type { HomeEnv } from '../shared/home.ts'
import { CommandError, isForPeople, type Output, plain, type WideFormat } from '../shared/output.ts'
import { printData, printList } from '../shared/print.ts'
import { differingLines } from './words.ts'

/** `plat pins list`: one line for each server whose tools are pinned. */
export async function pinsList(options: GatewayOptions<WideFormat>, output: Output): Promise<number> {
  const { env } = await findGateway(options.dir)
  const servers = (await adminList(env, '/v1/pins', isServerPins)).reverse()
  if (servers.length === 0 && isForPeople(options.output)) {
    output.out('no tools are known yet: they are learned when an agent lists or calls them')
    return 0
  }
  printList(output, options.output, servers, {
    server: ({ id }) => plain(id),
    mode: ({ mode }) => mode,
    pinned: pinnedWord,
    tools: ({ observedTools }) => String(observedTools),
    drifted: ({ driftedTools }) => plain(driftedTools.join(', ')) || '-',
    seen: ({ lastSeen }) => lastSeen ?? '-',
  })
  return 0
}

/** `plat pins show`: each tool of one server, or of one tool what changed in its definition. */
export async function pinsShow(
  options: GatewayOptions & { readonly server: string; readonly tool?: string | undefined },
  output: Output,
): Promise<number> {
  const { env } = await findGateway(options.dir)
  if (options.tool !== undefined) return showTool(env, { ...options, tool: options.tool }, output)
  const found = await detail(env, options.server)
  if (options.output !== 'table') {
    printData(output, options.output, found)
    return 0
  }
  printList(output, 'table', found.tools, {
    tool: ({ tool }) => plain(tool),
    standing: ({ standing, rejected }) => (rejected ? 'rejected' : (standing ?? 'not seen')),
    pinned: ({ pins, source }) => (pins.length === 0 ? '-' : `${pins.map(short).join(', ')} (${source})`),
    offered: ({ digest }) => (digest === null ? '-' : short(digest)),
  })
  for (const line of advice(found)) output.out(line)
  return 0
}

async function showTool(
  env: HomeEnv,
  { server, tool, output: format }: GatewayOptions & { readonly server: string; readonly tool: string },
  output: Output,
): Promise<number> {
  const found = await admin(env, 'GET', `${pathOf(server)}/definition?tool=${encodeURIComponent(tool)}`)
  if (!isToolDefinitions(found)) throw new CommandError('the response of the gateway is not a definition')
  if (format !== 'table') {
    printData(output, format, found)
    return 0
  }
  const { standing, rejected, digest, pins, source, pinned, offered } = found
  output.out(`${plain(tool)}: ${standing ?? 'not seen'}${rejected ? ', rejected' : ''}`)
  output.out(`pinned   ${pins.length === 0 ? '-' : `${pins.join(', ')} (${source})`}`)
  output.out(`offered  ${digest ?? '-'}`)
  const known = pinned.find((text) => text !== null) ?? null
  if (pins.length > 0 && known === null)
    output.out('\nthe pinned definition was never offered to this gateway, or is too long to be kept')
  const lines = offered === null ? [] : differingLines(known, offered)
  if (offered === null)
    output.out('\nnot offered since the gateway started; run an agent that lists or calls it, then look again')
  if (lines.length > 0) output.out(`\n${lines.join('\n')}`)
  return 0
}

/**
 * `plat pins accept`: the definitions that the servers offer now become the pinned ones; `tools` empty: all that changed or
 * have no pin. What resources pin is changed there, and said so. Exit code 1 when any of them was not accepted.
 */
export async function pinsAccept(
  options: GatewayOptions & { readonly server: string; readonly tools: readonly string[] },
  output: Output,
): Promise<number> {
  const { env } = await findGateway(options.dir)
  const before = await detail(env, options.server)
  const chosen =
    options.tools.length === 0 ? before.tools.filter(isOpen) : options.tools.map((tool) => named(before, tool))
  const accepted: ToolPinView[] = []
  const refused: string[] = []
  for (const one of chosen) {
    if (one.source === 'resources') refused.push(inResources(before, one))
    else if (one.digest === null)
      refused.push(
        `${plain(one.tool)}: not offered since the gateway started; run an agent that lists or calls it, then accept`,
      )
    else if (!one.digest.startsWith(DIGEST))
      refused.push(
        `${plain(one.tool)}: its definition is not valid Unicode, so it has no digest to pin; contact the server's owner`,
      )
    else {
      await admin(env, 'POST', `${pathOf(before.id)}/accept`, { tool: one.tool, digest: one.digest })
      accepted.push(one)
    }
  }
  if (options.output !== 'table') printData(output, options.output, await detail(env, options.server))
  else {
    for (const { tool, digest } of accepted) output.out(`accepted ${plain(before.id)}/${plain(tool)} as ${digest}`)
    if (chosen.length === 0 && before.lastSeen === null) {
      output.out(`${plain(before.id)} has offered nothing since the gateway started; run an agent that lists its tools`)
    } else if (chosen.length === 0) output.out(`every tool of ${plain(before.id)} is as it is pinned`)
  }
  for (const line of refused) output.err(line)
  return refused.length === 0 ? 0 : 1
}

/** `plat pins reject`: refuses the definitions that the server offers now. Exit code 1 when any of them was not rejected. */
export async function pinsReject(
  options: GatewayOptions & { readonly server: string; readonly tools: readonly string[] },
  output: Output,
): Promise<number> {
  const { env } = await findGateway(options.dir)
  const before = await detail(env, options.server)
  const refused: string[] = []
  for (const { tool, digest } of options.tools.map((name) => named(before, name))) {
    if (digest === null || !digest.startsWith(DIGEST)) {
      refused.push(
        `${plain(tool)}: has no digest; it was not offered since the gateway started, or is no valid Unicode`,
      )
      continue
    }
    await admin(env, 'POST', `${pathOf(before.id)}/reject`, { tool, digest })
    if (options.output === 'table') output.out(`rejected ${plain(before.id)}/${plain(tool)} as ${digest}`)
  }
  if (options.output !== 'table') printData(output, options.output, await detail(env, options.server))
  for (const line of refused) output.err(line)
  return refused.length === 0 ? 0 : 1
}

/** The condition Pinned of the MCPServer. */
function pinnedWord({ lastSeen, driftedTools, unpinnedTools }: ServerPins): string {
  if (driftedTools.length > 0) return 'no'
  if (lastSeen === null) return 'not seen'
  return unpinnedTools > 0 ? `all but ${unpinnedTools}` : 'yes'
}

/** A tool that a person has to review. */
function isOpen({ standing }: ToolPinView): boolean {
  return standing === 'drifted' || standing === 'unpinned'
}

function advice(found: ServerPinsDetail): string[] {
  const open = found.tools.filter(isOpen)
  const mine = open.filter(({ source }) => source !== 'resources')
  return [
    ...(open.length > 0 ? ['', `see what changed with: plat pins show ${plain(found.id)} <tool>`] : []),
    ...(mine.length > 0 ? [`pin what is offered now with: plat pins accept ${plain(found.id)}`] : []),
    ...open.filter(({ source }) => source === 'resources').map((one) => inResources(found, one)),
  ]
}

function inResources({ id }: ServerPinsDetail, { tool, digest }: ToolPinView): string {
  const pin = `${JSON.stringify(plain(tool))}: ${digest ?? 'sha256:…'}`
  return `resources pin ${plain(tool)}: write ${pin} into toolPins.pins of MCPServer ${plain(id)}, or of its ToolPolicy`
}

function named({ id, tools }: ServerPinsDetail, tool: string): ToolPinView {
  const found = tools.find((one) => one.tool === tool)
  if (found !== undefined) return found
  throw new CommandError(`${id} has no tool ${JSON.stringify(tool)}; see plat pins show ${id}`)
}

async function detail(env: HomeEnv, server: string): Promise<ServerPinsDetail> {
  const answer = await admin(env, 'GET', pathOf(server))
  if (isServerPinsDetail(answer)) return answer
  throw new CommandError('the response of the gateway is not a list of pins')
}

/** A server without a namespace is of `default`. */
function pathOf(server: string): string {
  const [namespace = '', name = '', ...rest] = server.includes('/') ? server.split('/') : ['default', server]
  if (namespace === '' || name === '' || rest.length > 0) {
    throw new CommandError(`${JSON.stringify(server)} is not a server: write its name, or <namespace>/<name>`, 2)
  }
  return `/v1/pins/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`
}

/** How a digest begins. A definition without a canonical form has none. */
const DIGEST = 'sha256:'
/** Characters of a digest that a person compares. */
const SHORT = DIGEST.length + 12

function short(digest: string): string {
  return digest.slice(0, SHORT)
}
