/** esbuild collects the imported styles in one file. */
declare module "*.css";
