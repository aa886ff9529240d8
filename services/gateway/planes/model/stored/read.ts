import { type Denial, deny, isDenial, modelScopeOf, type Parsed } from '../../../call/index.ts'
import { files } from '../dialects/files.ts'
import { type CallersModels, only } from '../directory/address.ts'
import { scopeFault, type UnreadRequest, useModelBody } from '../uploads/request.ts'

/** `files`, `files/<id>` and `files/<id>/content`. An id becomes a part of a path at the provider. */
const PATH = /^files(?:\/([A-Za-z0-9][A-Za-z0-9_-]{0,127})(\/content)?)?$/

/** Returns true for an endpoint for files. */
export function isFilesEndpoint(endpoint: string): boolean {
  return endpoint === 'files' || endpoint.startsWith('files/')
}

/** Reads a request for files; `route` is null at the address of all routes, where the token must have files of one route. */
export function readFiles(
  unread: UnreadRequest,
  { endpoint, route }: { readonly endpoint: string; readonly route: string | null },
  models: (scope: string) => CallersModels,
): Parsed | Denial | Promise<Parsed | Denial> {
  const { method } = unread.arrival.wire
  const [path, id = null, content] = PATH.exec(endpoint) ?? []
  if (path === undefined) return deny('not_found', 'no such file')
  const refused = scopeFault(unread.identity, files, route)
  if (refused !== null) return refused
  const found = route === null ? models(modelScopeOf(files.operation)).find(null) : { route }
  if (isDenial(found)) return found
  const parsed = { operation: files.operation, server: found.route, name: id, body: null, parent: null } as const
  if (id === null && method === 'POST')
    return useModelBody(unread, files, (body) => ({ ...parsed, method: files.method, body }))
  if (content !== undefined) return method === 'GET' ? { ...parsed, method: 'files/content' } : only('GET', method)
  if (method === 'GET') return { ...parsed, method: id === null ? 'files/list' : 'files/get' }
  if (id !== null && method === 'DELETE') return { ...parsed, method: 'files/delete' }
  return only(id === null ? 'GET, POST' : 'GET, DELETE', method)
}
