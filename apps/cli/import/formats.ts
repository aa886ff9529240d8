/** Files that `plat import` reads. */
export const IMPORT_FORMATS = ['litellm', 'mcp-json', 'claude-desktop', 'compose'] as const
export type ImportFormat = (typeof IMPORT_FORMATS)[number]
