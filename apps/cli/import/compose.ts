import { isObject } from '@plat/core'
import { readYaml } from '@plat/kubernetes'
import { CommandError } from '../shared/output.ts'
import type { FoundServer } from './mcp-servers.ts'
import type { Notes } from './notes.ts'

/** Label by which a service says that it is an MCP server: its path, such as `/mcp`. */
const LABEL = 'plat.dev/mcp'

/**
 * Finds the MCP servers of a compose file: services that publish a port and either have the label `plat.dev/mcp: <path>` or `mcp` in their
 * name or image.
 * @throws CommandError if the text is not YAML or has no services
 */
export function serversOfCompose(text: string, file: string, notes: Notes): readonly FoundServer[] {
  const { value, problems } = readYaml(text)
  const [problem] = problems
  if (problem !== undefined) throw new CommandError(`${file}:${problem.line}: ${problem.message}`)
  const services = isObject(value) ? value.services : undefined
  if (!isObject(services)) throw new CommandError(`${file}: no services: "services" is missing`)
  return Object.entries(services).flatMap(([name, service]) => {
    const path = `services["${name}"]`
    const found = serverOf(name, isObject(service) ? service : {})
    if (typeof found !== 'string') return [{ name: nameOf(name), path, entry: found }]
    notes.add(path, found)
    return []
  })
}

/** The address of a service, or why it is none of an MCP server. */
function serverOf(name: string, service: Readonly<Record<string, unknown>>): { readonly url: string } | string {
  const path = labelOf(service)
  if (path === null && !/mcp/i.test(`${name} ${String(service.image ?? '')}`))
    return `it does not look like an MCP server; if it is one, give it the label ${LABEL}: /mcp`
  const port = publishedPort(service.ports)
  if (port === null) return 'it publishes no port on this machine, and plat runs beside the containers'
  return { url: `http://127.0.0.1:${port}${path ?? '/mcp'}` }
}

function labelOf({ labels }: Readonly<Record<string, unknown>>): string | null {
  const listed = Array.isArray(labels) ? labels.map(String).find((label) => label.startsWith(`${LABEL}=`)) : undefined
  const text = isObject(labels) ? labels[LABEL] : listed?.slice(LABEL.length + 1)
  return typeof text === 'string' && text.startsWith('/') ? text : null
}

/** The first port of the host: `8080:80`, `127.0.0.1:8080:80` or `{published: 8080}`. Null if there is none, or a range or variable. */
function publishedPort(ports: unknown): number | null {
  for (const entry of Array.isArray(ports) ? ports : []) {
    const text = isObject(entry) ? String(entry.published ?? '') : String(entry)
    const [, port] = (isObject(entry) ? /^(\d+)$/ : /^(?:[\d.]+:)?(\d+):\d+(?:\/tcp)?$/).exec(text) ?? []
    if (port !== undefined) return Number(port)
  }
  return null
}

function nameOf(name: string): string {
  return name
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-|-$/g, '')
}
