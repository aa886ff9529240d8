import { normalize } from 'node:path/posix'
import type { Manifest } from '@plat/resources'
import type { Problem } from '../validate/problem.ts'
import { stdioFileOf } from './file.ts'
import type { StdioPlace } from './place.ts'

/** Folders of the bridge and of the system, which no volume may cover. */
const TAKEN = ['/plat/stdio', '/etc/plat-stdio', '/proc', '/sys', '/dev', '/etc']
const TMP = '/tmp'
/** Largest file of a bridge, in bytes: a Secret holds 1 MiB. */
const FILE_MAX_BYTES = 512 * 1024

/** Problems of a stdio server that only a cluster has. `place`: null if the operator runs none. */
export function stdioPlaceProblems(server: Manifest<'MCPServer'>, place: StdioPlace | null): Problem[] {
  const { stdio } = server.spec
  if (stdio === undefined) return []
  if (place === null) {
    const why =
      'needs an operator with -stdio-image (chart: operator.stdioServers.enabled); or run the server in a Deployment with Streamable HTTP, and set url'
    return [{ path: 'stdio', why }]
  }
  const problems: Problem[] = []
  const { image, cwd, isolation = {} } = stdio
  if (image === undefined)
    problems.push({ path: 'stdio.image', why: 'Required value on a cluster: the image with the program' })
  if (cwd !== undefined && !cwd.startsWith('/'))
    problems.push({ path: 'stdio.cwd', why: 'must be absolute on a cluster' })
  if ((isolation.hidden ?? []).length > 0)
    problems.push({ path: 'stdio.isolation.hidden', why: 'not on a cluster: use an image without these files' })
  problems.push(...writableProblems(isolation.writable ?? []))
  const bytes = Buffer.byteLength(JSON.stringify(stdioFileOf(server, place)))
  if (bytes > FILE_MAX_BYTES)
    problems.push({ path: 'stdio', why: `args and env have ${bytes} bytes: on a cluster at most ${FILE_MAX_BYTES}` })
  return problems
}

function writableProblems(paths: readonly string[]): Problem[] {
  const known = new Set<string>()
  return paths.flatMap((path, index) => {
    const why = writableProblem(path) ?? (known.has(path) ? 'is listed twice' : null)
    known.add(path)
    return why === null ? [] : [{ path: `stdio.isolation.writable[${index}]`, why }]
  })
}

function writableProblem(path: string): string | null {
  if (!path.startsWith('/') || path === '/' || normalize(path) !== path || path.endsWith('/') || path.includes(':'))
    return 'on a cluster must be an absolute path without . and .. and :, other than /'
  const covers = TAKEN.find(
    (one) => one === path || one.startsWith(`${path}/`) || (one !== '/etc' && path.startsWith(`${one}/`)),
  )
  return covers === undefined ? null : `must not cover ${covers}`
}

/** Folders that get empty volumes; that of temporary files always has one. */
export function writableFolders({ spec: { stdio } }: Manifest<'MCPServer'>): readonly string[] {
  return (stdio?.isolation?.writable ?? []).filter((path) => path !== TMP)
}
