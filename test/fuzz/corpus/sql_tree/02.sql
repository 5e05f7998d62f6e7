 -- a comment
 SELECT /* another */ 1 -- and one
