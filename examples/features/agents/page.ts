/** The pages in docs/agents: their programs, and the commands that run them. */
import { readFileSync } from 'node:fs'
import path from 'node:path'

const PAGES = path.resolve(import.meta.dirname, '../../../docs/agents')

/** The task in the commands of the pages. */
const TASK = 'What does note.txt say?'

/** How a page has its program run. */
export type Mode = 'Under plat run' | 'With a token'

/** How a client is run; at one address only those that need no page. */
export type Way = Mode | 'At one address'

export interface AgentPage {
  /** Files that the page shows, by name. */
  readonly files: Readonly<Record<string, string>>
  /** The shell script of a way, for this task. */
  script(way: Way, task: string): string
}

const FILES: Readonly<Record<string, string>> = { python: 'agent.py', js: 'agent.mjs', json: '.gemini/settings.json' }

/**
 * Reads a page. Lines that name the server of the pages, `files`, are repeated for all `servers`. Of several programs, `variant` chooses the
 * one whose number it is.
 */
export function readPage(name: string, servers: readonly string[], variant = 0): AgentPage {
  const text = read(name)
  const [head = ''] = text.split('\n## ')
  const files = Object.keys(FILES).flatMap((language) =>
    blocksOf(head, language).map((block) => [FILES[language], block]),
  )
  return {
    files: Object.fromEntries(files.map(([file, block = '']) => [file, forServers(block, servers)])),
    script(way, task) {
      const own = blocksOf(sectionOf(text, way), 'sh')[variant] ?? ''
      const shared =
        way === 'Under plat run' ? '' : blocksOf(sectionOf(read('README.md'), 'With a token'), 'sh').join('\n')
      return forServers(`${shared}\n${own}`, servers).replaceAll(TASK, task)
    },
  }
}

/** The address of the gateway in the commands of the pages. */
export const GATEWAY_URL = 'http://127.0.0.1:8080'

export function read(name: string): string {
  return readFileSync(path.join(PAGES, name), 'utf8')
}

function sectionOf(text: string, heading: string): string {
  const [, section = ''] = text.split(`\n## ${heading}\n`)
  return section.split('\n## ')[0] ?? ''
}

function blocksOf(text: string, language: string): readonly string[] {
  return [...text.matchAll(new RegExp(`^\`\`\`${language}\n(.*?)^\`\`\``, 'gms'))].map(([, block = '']) => block)
}

/** Repeats lines that name the server `files`, as members of JSON or as options. */
function forServers(text: string, servers: readonly string[]): string {
  const lines = text.split('\n').map((line) => {
    const copies = servers.map((server) => line.replaceAll(/\bfiles\b/g, server))
    if (line.includes('/mcp/files') || line.includes('mcp_servers.files'))
      return copies.join(line.trimStart().startsWith('"') ? ',\n' : '\n')
    return line.replaceAll('mcp__files', servers.map((server) => `mcp__${server}`).join(' '))
  })
  return lines.join('\n')
}
