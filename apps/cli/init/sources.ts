import { readFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { type FoundServer, serversIn } from '../import/mcp-servers.ts'
import { CommandError } from '../shared/output.ts'

/** A configuration of an MCP client that exists. */
export interface Source {
  /** Program: `Claude Desktop`. */
  readonly program: string
  readonly file: string
  readonly text: string
  readonly servers: readonly FoundServer[]
}

export interface Places {
  /** The directory that is initialised. */
  readonly dir: string
  /** The user's home. */
  readonly home?: string
  readonly platform?: NodeJS.Platform
  readonly env: NodeJS.ProcessEnv
}

/** Reads the configurations of MCP clients. One that cannot be read is named in `problems`. */
export async function findSources(
  places: Places,
): Promise<{ sources: readonly Source[]; problems: readonly string[] }> {
  const sources: Source[] = []
  const problems: string[] = []
  for (const { program, file } of candidates(places)) {
    const text = await readFile(file, 'utf8').catch(() => null)
    if (text === null) continue
    try {
      sources.push({ program, file, text, servers: serversIn(text, file) })
    } catch (error) {
      if (!(error instanceof CommandError)) throw error
      problems.push(error.message)
    }
  }
  return { sources, problems }
}

function candidates({ dir, home = homedir(), platform = process.platform, env }: Places) {
  const settings = settingsFolder(home, platform, env)
  return [
    { program: '.mcp.json', file: join(dir, '.mcp.json') },
    { program: 'VS Code', file: join(dir, '.vscode', 'mcp.json') },
    { program: 'Cursor', file: join(dir, '.cursor', 'mcp.json') },
    { program: 'Claude Desktop', file: join(settings, 'Claude', 'claude_desktop_config.json') },
    { program: 'VS Code', file: join(settings, 'Code', 'User', 'mcp.json') },
    { program: 'Cursor', file: join(home, '.cursor', 'mcp.json') },
  ]
}

/** Where programs keep the settings of a user. */
function settingsFolder(home: string, platform: NodeJS.Platform, env: NodeJS.ProcessEnv): string {
  if (platform === 'darwin') return join(home, 'Library', 'Application Support')
  if (platform === 'win32') return env.APPDATA ?? join(home, 'AppData', 'Roaming')
  return env.XDG_CONFIG_HOME ?? join(home, '.config')
}
