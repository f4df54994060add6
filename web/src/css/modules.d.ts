// Style sheets are modules to the bundler: it puts them into app.css.
declare module "*.css";
