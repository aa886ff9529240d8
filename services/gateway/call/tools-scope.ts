let lastServer = ''
let lastScope = 'tools:'

/** Returns the scope that calls of a server need. Keeps the last one: V8 internalizes each new string that is looked up in a `Set`. */
export function toolsScopeOf(server: string): string {
  if (server !== lastServer) {
    lastServer = server
    lastScope = `tools:${server}`
  }
  return lastScope
}
