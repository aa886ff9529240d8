/**
 * Runs the program in `mainUrl` under Node 26 or newer, and ends the process with the exit code that its export
 * `main(argv: readonly string[]): Promise<number>` answers. Under an older Node, from 20 on, it starts the pinned
 * Node 26 of the project's optional dependencies in its place. Never answers.
 */
export function launch(mainUrl: URL): Promise<never>

/** Keeps an object of `process.nextTick`, so that V8 keeps their hidden class; call before the first full collection. */
export function keepTickShape(): void

export const keptTicks: readonly object[]
