/**
 * Runs the program in `mainUrl` under Node 26 or newer, and ends the process with the exit code that its export
 * `main(argv: readonly string[]): Promise<number>` answers. Under an older Node, from 20 on, it starts the pinned
 * Node 26 of the project's optional dependencies in its place. Never answers.
 */
export function launch(mainUrl: URL): Promise<never>
